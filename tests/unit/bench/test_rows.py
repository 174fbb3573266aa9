"""A row says whether its goal is met, and claims nothing where a number is missing."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from penstock.bench.rows import Goal, compare
from penstock.bench.turns import take_turns


@pytest.mark.parametrize(
    ("ours", "goal", "met"),
    [(2.0, Goal(3.0), True), (4.0, Goal(3.0), False), (4.0, Goal(3.0, "higher"), True), (4.0, None, None)],
)
def test_a_goal_is_held_against_the_ratio(ours: float, goal: Goal | None, met: bool | None) -> None:
    row = compare("n", "ms", ours, ("peer", 1.0), goal)
    assert (row.ratio, row.met) == (ours, met)
    assert row.goal == (None if goal is None else str(goal))


def test_a_peer_that_took_no_time_meets_no_goal() -> None:
    row = compare("n", "ms", 1.0, ("peer", 0.0), Goal(3.0))
    assert math.isnan(row.ratio)
    assert row.met is False


def test_contenders_take_turns_and_get_every_input() -> None:
    calls: list[tuple[str, int]] = []

    def contender(name: str) -> Callable[[int], None]:
        return lambda given: calls.append((name, given))

    seconds = take_turns({"a": contender("a"), "b": contender("b")}, [0, 1, 2], warm_up=1)
    assert calls == [("a", 0), ("b", 0), ("b", 1), ("a", 1), ("a", 2), ("b", 2)]
    assert set(seconds) == {"a", "b"}
    assert all(value >= 0 for value in seconds.values())
