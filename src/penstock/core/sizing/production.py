"""How fast records are appended to a topic, from its successive end offsets.

Rules: a rate is a slope over all samples of the last seconds, so that a producer's bursts average out; where one step
explains those seconds clearly better than one rate does, and it goes up, what came after it counts alone, so that a step
up is met in one step; right after it too little has come to say how far up, and that is said too. While there is such a
step the rate is `changing`, and nobody should scale in on it. An end that falls starts anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from penstock.model.ids import TopicPartition
from penstock.model.observations import PartitionSample

RISING_SHARE = 0.25
"""What came after the step is this much above what came before: the rate has stepped up."""
CHANGING_SHARE = 0.10
SIGNIFICANT_DEVIATIONS = 4.0
"""A step is one only when its sides differ by this many standard deviations of the difference."""
LEAST_BEFORE, LEAST_AFTER = 3, 1
"""Pieces of time on each side of a step."""
SETTLED_SHARE = 0.4
"""Of the seconds that are kept: so long after a step up its height is known."""
SAMPLES_KEPT = 240


@dataclass(frozen=True, slots=True)
class Production:
    """Per topic, the newest (instant, sum of end offsets), oldest first."""

    keep_seconds: float
    ends: Mapping[str, tuple[tuple[float, float], ...]] = field(
        default_factory=dict[str, tuple[tuple[float, float], ...]]
    )
    partitions: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class TopicRate:
    """Records per second appended (NaN when not known yet), whether that is changing right now, and whether it has
    just stepped up and is not to be relied on yet."""

    per_second: float
    changing: bool
    rising: bool = False


def observe_ends(production: Production, samples: Iterable[PartitionSample]) -> Production:
    """Take in one collection; jobs that read the same topic see the same ends."""
    newest: dict[TopicPartition, PartitionSample] = {}
    for sample in samples:
        if sample.place not in newest or sample.end > newest[sample.place].end:
            newest[sample.place] = sample
    totals: dict[str, list[PartitionSample]] = {}
    for sample in newest.values():
        totals.setdefault(sample.place.topic, []).append(sample)
    ends, partitions = dict(production.ends), dict(production.partitions)
    for topic, rows in totals.items():
        at, total = max(row.at for row in rows), float(sum(row.end for row in rows))
        before = ends.get(topic, ())
        if before and at <= before[-1][0]:
            continue
        if partitions.get(topic) != len(rows) or (before and total < before[-1][1]):
            before = ()
        kept = tuple(row for row in before if row[0] >= at - production.keep_seconds)
        ends[topic], partitions[topic] = (*kept, (at, total))[-SAMPLES_KEPT:], len(rows)
    return Production(production.keep_seconds, ends, partitions)


def rate_of(production: Production, topic: str) -> TopicRate:
    """The topic's rate over the seconds that are kept."""
    rows = production.ends.get(topic, ())
    whole = _slope(rows)
    at = _find_step(rows)
    if at is None:
        return TopicRate(whole, False)
    # The piece in which the step lies holds some of both rates.
    newer = rows[at + 1 :] if len(rows) - at > 2 else rows[at:]
    before, after = _slope(rows[: at + 1]), _slope(newer)
    changing = abs(after - before) > CHANGING_SHARE * max(after, before)
    if not after > (1 + RISING_SHARE) * before:
        return TopicRate(whole, changing)
    seconds = newer[-1][0] - newer[0][0]
    return TopicRate(max(whole, after), changing, seconds < SETTLED_SHARE * production.keep_seconds)


def _find_step(rows: tuple[tuple[float, float], ...]) -> int | None:
    """The row after which another rate holds, where two rates explain the rows clearly better than one: least squares
    over all places for the step, and a test against what counts in between scatter, at least that of random ones."""
    pieces = len(rows) - 1
    if pieces < LEAST_BEFORE + LEAST_AFTER:
        return None
    first_at, first_end = rows[0]
    seconds, count = rows[-1][0] - first_at, rows[-1][1] - first_end
    best, place = math.inf, 0
    for i in range(LEAST_BEFORE, pieces - LEAST_AFTER + 1):
        passed, came = rows[i][0] - first_at, rows[i][1] - first_end
        # Without the sum of squares, which is the same for all places.
        left = -(came**2) / passed - (count - came) ** 2 / (seconds - passed)
        if left < best:
            best, place = left, i
    squares = math.fsum((end - before) ** 2 / (at - since) for (since, before), (at, end) in pairwise(rows))
    scatter = max(0.0, best + squares) / max(1, pieces - 2)
    passed, came = rows[place][0] - first_at, rows[place][1] - first_end
    before, after = came / passed, (count - came) / (seconds - passed)
    deviation = math.sqrt(max(scatter, count / seconds) * (1 / passed + 1 / (seconds - passed)))
    return place if abs(after - before) > SIGNIFICANT_DEVIATIONS * deviation else None


def _slope(rows: tuple[tuple[float, float], ...]) -> float:
    """Least-squares slope, not below zero; NaN for fewer than two instants."""
    if len(rows) < 2:
        return math.nan
    mean_at = math.fsum(at for at, _ in rows) / len(rows)
    mean_end = math.fsum(end for _, end in rows) / len(rows)
    spread = math.fsum((at - mean_at) ** 2 for at, _ in rows)
    if spread <= 0:
        return math.nan
    return max(0.0, math.fsum((at - mean_at) * (end - mean_end) for at, end in rows) / spread)
