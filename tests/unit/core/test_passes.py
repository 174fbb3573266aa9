"""When a job that works through what is there looks again, has ended, or is given up."""

from __future__ import annotations

import pytest

from penstock.core.jobs.passes import FRUITLESS_STARTS, begins_again, is_hopeless, was_last

FEEDERS = frozenset({"split", "clean"})


@pytest.mark.parametrize(
    ("feeders", "ended_before", "last"),
    [
        (frozenset(), frozenset(), True),
        (FEEDERS, frozenset({"split"}), False),
        (FEEDERS, FEEDERS | {"other"}, True),
    ],
)
def test_a_pass_was_the_last_when_all_feeders_had_ended_before_it(
    feeders: frozenset[str], ended_before: frozenset[str], last: bool
) -> None:
    assert was_last(feeders, ended_before) is last


@pytest.mark.parametrize(
    ("ended", "backlog", "rested", "again"),
    [
        (FEEDERS, 0, False, True),  # the last pass: what came after the one before is not known yet
        (frozenset({"split"}), 5, True, True),
        (frozenset({"split"}), 5, False, False),
        (frozenset({"split"}), 0, True, False),
    ],
)
def test_the_last_pass_begins_at_once_and_others_for_a_backlog_at_the_triggers_pace(
    ended: frozenset[str], backlog: int, rested: bool, again: bool
) -> None:
    assert begins_again(FEEDERS, ended, backlog, rested=rested) is again


def test_there_is_hope_until_three_starts_in_a_row_bore_nothing() -> None:
    assert [is_hopeless(n) for n in range(FRUITLESS_STARTS + 1)] == [False, False, False, True]
