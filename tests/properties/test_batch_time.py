"""The batch-time formula against its definition, and the same over columns: equal sizes, equal limits, equal rates."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.sizing.batch_time import (
    MOST_THREADS,
    JobCost,
    StageCost,
    batch_seconds,
    carried_rate,
    largest_batch,
    threads_for,
)
from penstock.core.sizing.columns import LIMITS, batch_times, carried_rates, columns_of, needed_threads
from strategies import job_costs

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
rates = st.floats(0.0, 50_000.0)
seconds = st.floats(0.2, 20.0)


@settings(max_examples=200, deadline=None)
@given(job_costs, rates, seconds)
def test_the_need_is_the_least_that_keeps_to_the_objective(
    cost: JobCost, rate: float, objective: float
) -> None:
    need = threads_for(cost, rate, objective)
    records = rate * objective
    if need.limit == "none":
        assert batch_seconds(cost, records, need.threads) <= objective * (1 + 1e-8)
        fewer = batch_seconds(cost, records, max(1, need.threads - 1))
        assert need.threads == 1 or fewer > objective
    else:
        assert batch_seconds(cost, records, MOST_THREADS) > objective
    assert need.batch_seconds == batch_seconds(cost, records, need.threads)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(job_costs, rates, seconds), min_size=1, max_size=8))
def test_columns_say_the_same_as_single_jobs(jobs: list[tuple[JobCost, float, float]]) -> None:
    columns = columns_of(tuple(cost for cost, _, _ in jobs))
    objective = np.array([s for _, _, s in jobs])
    records = np.array([rate * s for _, rate, s in jobs])
    threads, limits = needed_threads(columns, records, objective)
    for i, (cost, rate, each) in enumerate(jobs):
        need = threads_for(cost, rate, each)
        assert LIMITS[int(limits[i])] == need.limit
        # A goal of "within a percent of the best" may fall on a rounding edge, a clear one may not.
        assert int(threads[i]) == need.threads or (
            need.limit != "none" and abs(int(threads[i]) - need.threads) <= 1
        )


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(job_costs, rates, seconds, st.integers(1, 500)), min_size=1, max_size=8))
def test_columns_take_and_carry_the_same(jobs: list[tuple[JobCost, float, float, int]]) -> None:
    columns = columns_of(tuple(cost for cost, *_ in jobs))
    objective = np.array([s for _, _, s, _ in jobs])
    records = np.array([rate * s for _, rate, s, _ in jobs])
    threads = np.array([float(p) for *_, p in jobs])
    took, carried = batch_times(columns, records, threads), carried_rates(columns, objective, threads)
    for i, (cost, rate, each, p) in enumerate(jobs):
        assert took[i] == pytest.approx(batch_seconds(cost, rate * each, p), rel=1e-9)
        assert carried[i] == pytest.approx(carried_rate(cost, each, p), rel=1e-6, abs=1e-6)
        assert columns.job(i) == cost


@settings(max_examples=100, deadline=None)
@given(job_costs, rates, st.integers(1, 200), st.integers(1, 200))
def test_a_batch_never_takes_longer_with_more_threads(cost: JobCost, records: float, p: int, q: int) -> None:
    low, high = sorted((p, q))
    assert batch_seconds(cost, records, high) <= batch_seconds(cost, records, low) * (1 + 1e-9)


@settings(max_examples=100, deadline=None)
@given(job_costs, seconds, st.integers(1, 200))
def test_the_largest_batch_takes_just_the_time_there_is(cost: JobCost, objective: float, p: int) -> None:
    most = largest_batch(cost, objective, p)
    if most > 0:
        assert batch_seconds(cost, most, p) == pytest.approx(objective, rel=1e-6)
        assert carried_rate(cost, objective, p) == pytest.approx(most / objective)
    else:
        assert carried_rate(cost, objective, p) == 0.0
        assert batch_seconds(cost, 0.0, p) >= objective * (1 - 1e-9)


@pytest.mark.parametrize(
    ("cost", "rate", "limit", "threads"),
    [
        (JobCost(0.1, (StageCost(0.001),)), 0.0, "none", 1),
        (JobCost(0.0, (StageCost(0.001),)), 1_000.0, "none", 1),
        (JobCost(0.0, (StageCost(0.001),)), 1_000.1, "none", 2),
        (JobCost(0.1, (StageCost(0.001),)), 950.0, "none", 1),
        (JobCost(0.1, (StageCost(0.001),)), 951.0, "none", 2),
        (JobCost(0.0, (StageCost(0.001), StageCost(0.002))), 1_000.0, "none", 3),
        (JobCost(1.0, (StageCost(0.001),)), 1_000.0, "none", 2),
        (JobCost(2.0, (StageCost(0.001),)), 4_000.0, "overhead-bound", 4),
        (JobCost(0.5, (StageCost(0.001, task_seconds=1.6),)), 4_000.0, "overhead-bound", 4),
        (JobCost(0.0, (StageCost(0.001, ceiling=4),)), 5_000.0, "state partitions", 1),
        (JobCost(0.0, (StageCost(0.001, unit_share=0.5),)), 5_000.0, "hot unit", 2),
    ],
)
def test_by_hand(cost: JobCost, rate: float, limit: str, threads: int) -> None:
    """L = 2 s. One stage without ceilings: ceil(target / (lambda_p (1 - h / L))), as MODEL 3.1 has it."""
    need = threads_for(cost, rate, 2.0)
    assert (need.limit, need.threads) == (limit, threads)


def test_a_piece_that_cannot_be_split_bounds_a_stage_from_below() -> None:
    cost = JobCost(0.25, (StageCost(0.001, unit_share=0.25), StageCost(0.001, ceiling=4)))
    assert [batch_seconds(cost, 1_000.0, p) for p in (1, 2, 4, 100)] == [1.5, 1.0, 0.75, 0.75]


def test_records_that_cost_nothing_are_carried_without_end() -> None:
    free = JobCost(0.1, (StageCost(0.0),))
    assert math.isinf(carried_rate(free, 2.0, 1)) and carried_rate(free, 0.05, 1) == 0.0
    assert carried_rate(free, 0.0, 1) == 0.0 and threads_for(free, 1e9, 2.0).threads == 1
