"""What a status line shows of a job: its newest window alone, and NaN where a number can't be known."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from fleets import make_job, one_stage, window
from penstock.core.sizing.batch_time import JobCost, StageCost, carried_rate
from penstock.core.sizing.standing import job_standing, offered_rate, time_lagged, window_cost

COST = one_stage(0.001, 0.2)
JOB = make_job("x", ["a"], ["b"])
WINDOW = window("x", COST, 8_000.0, 2, topic="a", out={"b": 16_000.0}, production_rates={"a": 900.0})


def test_rates_are_counts_over_elapsed_time() -> None:
    found = job_standing(WINDOW, 4_000.0, 2, JOB)
    assert (found.rate_in, found.rate_out, found.rate_offered) == (800.0, 1_600.0, 900.0)
    assert found.lag_seconds == 5.0 and found.batch_seconds == WINDOW.batch_seconds


def test_capacity_is_the_formulas_at_the_present_threads() -> None:
    for threads in (1, 2, 7):
        assert job_standing(WINDOW, 0.0, threads, JOB).capacity == pytest.approx(
            carried_rate(COST, 2.0, threads)
        )


def test_before_the_first_window_nothing_is_known_but_an_empty_backlog() -> None:
    found = job_standing(None, 0.0, 2, JOB)
    assert math.isnan(found.rate_in) and math.isnan(found.capacity) and found.lag_seconds == 0.0
    assert math.isnan(job_standing(None, 5.0, 2, JOB).lag_seconds)


@pytest.mark.parametrize(
    ("backlog", "rate", "lag"),
    [(0.0, 0.0, 0.0), (0.0, math.nan, 0.0), (10.0, 5.0, 2.0), (10.0, 0.0, math.inf), (1.0, 0.25, 4.0)],
)
def test_time_lagged(backlog: float, rate: float, lag: float) -> None:
    assert time_lagged(backlog, rate) == lag


@pytest.mark.parametrize(("backlog", "rate"), [(10.0, math.nan), (math.nan, 5.0), (-1.0, 5.0), (10.0, -5.0)])
def test_a_lag_of_impossible_numbers_is_not_known(backlog: float, rate: float) -> None:
    assert math.isnan(time_lagged(backlog, rate))


def test_what_was_not_seen_to_be_appended_is_what_was_taken_and_what_piled_up() -> None:
    told = replace(WINDOW, production_rates={}, backlog={"a": 3_000.0}, backlog_before={"a": 1_000.0})
    assert offered_rate(JOB, told) == 1_000.0
    assert offered_rate(JOB, replace(told, backlog={"a": 0.0}, backlog_before={"a": 9_000.0})) == 0.0
    assert math.isnan(offered_rate(JOB, replace(told, records_in={"a": math.nan})))


def test_both_inputs_of_a_join_are_offered() -> None:
    job = make_job("x", ["a", "c"])
    told = replace(WINDOW, production_rates={"a": 900.0, "c": 50.0})
    assert offered_rate(job, told) == 950.0
    half = replace(told, production_rates={"a": 900.0, "c": math.nan}, backlog={}, backlog_before={})
    assert offered_rate(job, half) == 800.0


@pytest.mark.parametrize(
    "torn",
    [
        replace(WINDOW, records_in={"a": 0.0}),
        replace(WINDOW, records_in={"a": math.nan}),
        replace(WINDOW, overhead_seconds=-1.0),
        replace(WINDOW, stages=()),
        replace(WINDOW, stages=(replace(WINDOW.stages[0], useful_seconds=math.nan),)),
        replace(WINDOW, stages=(replace(WINDOW.stages[0], longest_seconds=-1.0),)),
    ],
)
def test_without_input_useful_time_or_possible_numbers_there_is_no_capacity(torn: object) -> None:
    assert window_cost(torn, 1) is None  # type: ignore[arg-type]
    assert math.isnan(job_standing(torn, 0.0, 2, JOB).capacity)  # type: ignore[arg-type]


def test_no_threads_have_no_capacity() -> None:
    assert math.isnan(job_standing(WINDOW, 0.0, 0, JOB).capacity)


def test_elapsed_time_of_nothing_gives_no_rates() -> None:
    found = job_standing(replace(WINDOW, started_at=WINDOW.ended_at), 5.0, 2, JOB)
    assert math.isnan(found.rate_in) and math.isnan(found.lag_seconds)


def test_a_window_shows_each_of_its_stages_costs() -> None:
    cost = JobCost(0.2, (StageCost(0.001), StageCost(0.0002, ceiling=8)))
    found = window_cost(window("x", cost, 8_000.0, 4, topic="a"), 1)
    assert found is not None and found.overhead_seconds == 0.2
    assert [s.record_seconds for s in found.stages] == [pytest.approx(0.001), pytest.approx(0.0002)]
    assert [s.ceiling for s in found.stages] == [None, 8]
