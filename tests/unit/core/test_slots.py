"""Who gets threads when slots are short, and how many executors hold so many threads."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleets import START
from penstock.core.sizing.slots import executors_for, grant_threads, slots_at_most
from penstock.model.observations import Observation

SEEN = Observation(START, {}, {}, {}, slots=8, executors=2, slots_per_executor=4, executors_max=5)


def grant(
    wanted: list[int], steady: list[int], threads: list[int], slots: int, ranks: list[int] | None = None
) -> list[int]:
    columns = [np.array(c, dtype=np.int64) for c in (wanted, steady, threads, ranks or [0] * len(wanted))]
    return grant_threads(columns[0], columns[1], columns[2], columns[3], slots).tolist()


def test_all_is_granted_where_it_fits_or_no_bound_is_known() -> None:
    assert grant([5, 3], [5, 3], [1, 1], 8) == [5, 3]
    assert grant([50, 30], [50, 30], [1, 1], 0) == [50, 30]


def test_nobody_shrinks_for_another() -> None:
    assert grant([9, 9], [9, 9], [6, 1], 8) == [6, 2]
    assert grant([9, 9], [9, 9], [6, 6], 8) == [6, 6]


def test_what_is_given_up_is_room_for_others() -> None:
    assert grant([2, 9], [2, 9], [6, 1], 8) == [2, 6]


def test_keeping_up_comes_before_working_off() -> None:
    assert grant([9, 4], [2, 4], [1, 1], 8) == [4, 4]


def test_the_higher_priority_comes_first_but_not_for_its_backlog() -> None:
    assert grant([5, 5], [5, 5], [1, 1], 6, [0, 7]) == [1, 5]
    assert grant([9, 4], [4, 4], [1, 1], 8, [5, 0]) == [4, 4]


def test_equals_share_in_proportion_to_what_they_ask() -> None:
    assert grant([10, 4], [10, 4], [1, 1], 8) == [6, 2]
    assert grant([4, 4, 4], [4, 4, 4], [1, 1, 1], 8) == [3, 3, 2]


@given(
    st.lists(
        st.tuples(st.integers(1, 60), st.integers(1, 60), st.integers(1, 60), st.integers(-2, 2)),
        min_size=1,
        max_size=8,
    ),
    st.integers(0, 80),
)
def test_slots_are_used_up_and_not_overdrawn(jobs: list[tuple[int, int, int, int]], slots: int) -> None:
    wanted, steady, threads, ranks = (list(c) for c in zip(*jobs, strict=True))
    granted = grant(wanted, [min(s, w) for s, w in zip(steady, wanted, strict=True)], threads, slots, ranks)
    kept = [min(w, t) for w, t in zip(wanted, threads, strict=True)]
    assert all(k <= g <= w for k, g, w in zip(kept, granted, wanted, strict=True))
    if slots:
        assert sum(granted) == max(sum(kept), min(slots, sum(wanted)))
    else:
        assert granted == wanted


@pytest.mark.parametrize(
    ("total", "executors"), [(1, 1), (4, 1), (5, None), (8, None), (9, 3), (20, 5), (99, 5)]
)
def test_executors_follow_threads_within_bounds(total: int, executors: int | None) -> None:
    assert executors_for(total, SEEN) == executors


@pytest.mark.parametrize(
    "fixed", [{"executors_max": 0}, {"slots_per_executor": 0}, {"executors": 0}], ids=lambda f: next(iter(f))
)
def test_a_fixed_or_unknown_number_of_executors_stays(fixed: dict[str, int]) -> None:
    assert executors_for(99, replace(SEEN, **fixed)) is None


def test_there_are_never_fewer_than_the_fewest() -> None:
    assert executors_for(1, replace(SEEN, executors_min=3)) == 3
    assert executors_for(1, replace(SEEN, executors=5, executors_min=9)) is None


def test_slots_that_can_be_had_count_as_slots() -> None:
    assert slots_at_most(SEEN) == 20
    assert slots_at_most(replace(SEEN, executors_max=1)) == 8
    assert slots_at_most(replace(SEEN, slots=0, executors_max=0)) == 0
