"""Times contenders turn by turn, so that whatever else the machine does hits all of them alike."""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

WARM_UP_TURNS = 3


def take_turns(
    contenders: Mapping[str, Callable[[Any], object]], inputs: Sequence[Any], warm_up: int = WARM_UP_TURNS
) -> dict[str, float]:
    """Median seconds of each contender over the inputs; all get every input, each time another one begins.

    The first `warm_up` inputs are not timed. The garbage collector rests meanwhile, as in `timeit`.
    """
    names = list(contenders)
    seconds: dict[str, list[float]] = {name: [] for name in names}
    resting = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for turn, given in enumerate(inputs):
            first = turn % len(names)
            for name in (*names[first:], *names[:first]):
                began = time.perf_counter()
                contenders[name](given)
                passed = time.perf_counter() - began
                if turn >= warm_up:
                    seconds[name].append(passed)
    finally:
        if resting:
            gc.enable()
    return {name: statistics.median(times) for name, times in seconds.items()}


def alternate(names: Sequence[str], turns: int) -> list[str]:
    """So many turns of each, every round beginning with another one."""
    order: list[str] = []
    for turn in range(turns):
        first = turn % len(names)
        order += [*names[first:], *names[:first]]
    return order
