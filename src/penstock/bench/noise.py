"""How far two samples of one thing may lie apart by chance alone: what a difference is held against.

Turns that were measured in pairs are swapped at random within each pair, many times over; how far the statistic's ratio
strays then is noise, since the two sides have become the same.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

SHUFFLES = 2_000
CHANCE = 0.95

Floats = NDArray[np.float64]


TRIM = 0.1


def mean_of(values: Floats) -> float:
    """Without the largest and the least tenth: what else a machine does comes in bursts."""
    cut = int(len(values) * TRIM)
    return float(np.mean(np.sort(values)[cut : len(values) - cut]))


def p99_of(values: Floats) -> float:
    """99th percentile."""
    return float(np.percentile(values, 99))


def noise_of(
    ours: Sequence[float], peers: Sequence[float], statistic: Callable[[Floats], float], seed: int = 1
) -> float:
    """By how much a ratio of `statistic` may exceed 1 in 95 of 100 cases where nothing differs; pairs in order."""
    pairs = np.array([ours, peers], dtype=np.float64)
    random = np.random.default_rng(seed)
    found: list[float] = []
    for _ in range(SHUFFLES):
        kept: Floats = np.floor(random.uniform(0.0, 2.0, len(ours)))
        one: Floats = pairs[0] * kept + pairs[1] * (1.0 - kept)
        other: Floats = pairs[1] * kept + pairs[0] * (1.0 - kept)
        found.append(statistic(one) / statistic(other) - 1.0)
    return max(0.0, float(np.quantile(np.array(found), CHANCE)))


def pair_up(marked: Sequence[tuple[bool, float]]) -> tuple[list[float], list[float]]:
    """Values of turns that were ours and of their neighbours that were the peer's, as pairs; an odd one is left out."""
    ours: list[float] = []
    peers: list[float] = []
    waiting: tuple[bool, float] | None = None
    for mark, value in marked:
        if waiting is None or waiting[0] == mark:
            waiting = (mark, value)
            continue
        one, other = (value, waiting[1]) if mark else (waiting[1], value)
        ours.append(one)
        peers.append(other)
        waiting = None
    return ours, peers
