"""What is remembered of costs and selectivities from window to window, and what warm-up windows may teach."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fleets import START, make_job, make_pipeline, window
from penstock.core.sizing.batch_time import JobCost, StageCost
from penstock.core.sizing.costs import SHUFFLED_RECORD_SHARE, SHUFFLED_TASK_SECONDS
from penstock.core.sizing.gather import gather_counters
from penstock.core.sizing.layout import lay_out
from penstock.core.sizing.learning import Knowledge, know_nothing, learn
from penstock.model.observations import CostMoments, InstanceSample, JobWindow, Observation

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
LAYOUT = lay_out(make_pipeline(make_job("x", ["a"], ["b"]), make_job("y", ["b"])))
COST = JobCost(0.3, (StageCost(0.001), StageCost(0.0005, ceiling=4)))


def at(number: int, cost: JobCost = COST, records: float = 1_000.0, **changes: Any) -> JobWindow:
    end = START + 10.0 * number
    return replace(window("x", cost, records, 4, topic="a", ended_at=end, out={"b": 3 * records}), **changes)


def taught(*windows: JobWindow, warm: bool = False, known: Knowledge | None = None, **more: Any) -> Knowledge:
    knowledge = known or know_nothing(LAYOUT)
    for each in windows:
        seen = Observation(each.ended_at, {each.job: each}, {}, {})
        new, _ = gather_counters(LAYOUT, seen, np.full(2, -np.inf), now=each.ended_at)
        knowledge = learn(LAYOUT, knowledge, new, np.full(2, warm), **more)
    return knowledge


def test_before_the_first_window_nothing_is_known() -> None:
    known = know_nothing(LAYOUT)
    assert not known.known.any() and np.isnan(known.selectivity).all() and not known.settled.any()


def test_a_window_teaches_costs_selectivity_and_age() -> None:
    known = taught(at(1))
    job = known.cost.job(0)
    assert job.overhead_seconds == pytest.approx(0.3)
    follows, shuffled = job.stages
    assert follows.record_seconds == pytest.approx(0.001)
    # What is usual for a task behind a shuffle is taken off, but never all.
    assert 0 < shuffled.record_seconds < 0.0005 and 0 < shuffled.task_seconds <= SHUFFLED_TASK_SECONDS
    assert [s.ceiling for s in job.stages] == [None, 4]
    assert known.selectivity.tolist() == [3.0] and known.at[0] == START + 10 and known.observed[0] == 100.0
    assert known.known.tolist() == [True, False]


def test_overhead_is_smoothed_once_rates_have_settled() -> None:
    start_up, later = at(1, overhead_seconds=0.9), at(2, overhead_seconds=0.1)
    known = taught(later, known=taught(start_up, warm=True))
    assert known.cost.job(0).overhead_seconds == pytest.approx(0.1)
    known = taught(at(3, overhead_seconds=0.3), known=known)
    assert known.cost.job(0).overhead_seconds == pytest.approx(0.2)


def test_what_is_undefined_leaves_what_was_known_and_its_age() -> None:
    idle = at(2, records_in={"a": 0.0})
    before, after = taught(at(1)), taught(at(1), idle)
    assert after.cost.job(0) == before.cost.job(0) and after.at[0] == START + 10
    assert after.selectivity.tolist() == [3.0] and after.observed[0] == 0.0


def test_a_torn_window_teaches_nothing() -> None:
    known = taught(at(1), at(2, overhead_seconds=math.nan))
    assert known.cost.job(0) == taught(at(1)).cost.job(0)


def test_an_output_without_a_count_keeps_its_selectivity() -> None:
    assert taught(at(1), at(2, records_out={})).selectivity.tolist() == [3.0]
    assert taught(at(1), at(2, records_out={"b": -4.0})).selectivity.tolist() == [3.0]
    assert taught(at(1), at(2, records_out={"b": 0.0})).selectivity.tolist() == [0.0]


def test_warm_up_windows_count_only_where_nothing_better_is_known() -> None:
    dear = JobCost(0.3, (StageCost(0.1),))
    early = taught(at(1, dear), warm=True)
    assert early.cost.job(0).stages[0].record_seconds == pytest.approx(0.1) and not early.settled[0]
    settled = taught(at(2), known=early)
    assert settled.settled[0] and settled.cost.job(0).stages[0].record_seconds == pytest.approx(0.001)
    again = taught(at(3, dear), warm=True, known=settled)
    assert again.cost.job(0) == settled.cost.job(0)


def test_a_stage_that_is_gone_costs_nothing_any_more() -> None:
    known = taught(at(1), at(2, JobCost(0.3, (StageCost(0.002),))))
    assert len(known.cost.job(0).stages) == 1
    assert known.cost.job(0).stages[0].record_seconds == pytest.approx(0.002)


def test_one_jobs_windows_teach_nothing_of_another() -> None:
    known = taught(at(1))
    assert known.cost.job(1) == JobCost(0.0, ()) and math.isnan(known.observed[1])


def test_the_cost_of_a_task_is_told_apart_over_windows() -> None:
    """Each window's batches are alike; only together do they say what a Spark task costs."""

    def alike(number: int, records: float, tasks: int) -> JobWindow:
        useful = 10 * (records * 0.001 + tasks * 0.05)
        one = useful / 10
        sums = CostMoments(
            10.0, 10 * records, 10.0 * tasks, useful, 10 * records**2 / one, 10 * records * tasks / one, 10 * tasks**2 / one
        )  # fmt: skip
        held = at(number, JobCost(0.1, (StageCost(0.001),)), 10 * records, batches=10)
        stage = replace(
            held.stages[0], useful_seconds=useful, spark_tasks=10 * tasks, longest_seconds=0.0, moments=sums, instances=()
        )  # fmt: skip
        return replace(held, stages=(stage,))

    first = taught(alike(1, 100.0, 8))
    assert first.cost.job(0).stages[0].task_seconds == 0.0
    second = taught(alike(2, 4_000.0, 2), known=first)
    stage = second.cost.job(0).stages[0]
    assert (stage.task_seconds, stage.record_seconds) == (pytest.approx(0.05), pytest.approx(0.001))


def test_behind_a_shuffle_a_task_costs_what_is_usual_to_begin_with() -> None:
    """Five batches of four tasks each behind the shuffle, 40 s in all: a tenth of a second of each is its own."""
    held = at(1, JobCost(0.1, (StageCost(0.001), StageCost(0.04, ceiling=4))))
    first, behind = taught(held).cost.job(0).stages
    assert first.task_seconds == 0.0
    assert behind.task_seconds == pytest.approx(SHUFFLED_TASK_SECONDS)
    assert behind.record_seconds == pytest.approx((40.0 - 20 * SHUFFLED_TASK_SECONDS) / 1_000)


def test_behind_a_shuffle_records_are_left_their_share() -> None:
    """Where tasks take less than what is usual, nearly all of the time is theirs."""
    held = at(1, JobCost(0.1, (StageCost(0.001, ceiling=4),)))
    (behind,) = taught(held).cost.job(0).stages
    assert behind.task_seconds == pytest.approx((1 - SHUFFLED_RECORD_SHARE) * 1.0 / 20)
    assert behind.record_seconds == pytest.approx(SHUFFLED_RECORD_SHARE * 1.0 / 1_000)


def test_the_paper_takes_the_mean_of_its_instances_rates() -> None:
    """Eq. 5: 1,000/s and 250/s are 625/s on average; the sums would say 400/s."""
    rows = (InstanceSample(500.0, 0.0, 0.5), InstanceSample(500.0, 0.0, 2.0))
    held = at(1, JobCost(0.3, (StageCost(0.001),)))
    held = replace(held, stages=(replace(held.stages[0], instances=rows, useful_seconds=2.5),))
    stage = taught(held, per_instance=True).cost.job(0).stages[0]
    assert 1 / stage.record_seconds == pytest.approx(625.0)
    assert taught(held, per_instance=True).cost.job(0).overhead_seconds == 0.0
    assert taught(held).cost.job(0).stages[0].record_seconds == pytest.approx(1 / 400)


def test_without_instances_the_paper_takes_the_sums() -> None:
    held = at(1, JobCost(0.3, (StageCost(0.001),)))
    held = replace(held, stages=(replace(held.stages[0], instances=()),))
    assert taught(held, per_instance=True).cost.job(0).stages[0].record_seconds == pytest.approx(0.001)


def test_a_later_stage_costs_by_what_the_job_took_in() -> None:
    """It sees five records for each that the job takes in, at half a millisecond each."""
    held = at(1, JobCost(0.0, (StageCost(0.001), StageCost(0.0025))))
    rows = (InstanceSample(5_000.0, 0.0, 2.5),)
    held = replace(held, stages=(held.stages[0], replace(held.stages[1], records_in=5_000.0, instances=rows)))
    assert taught(held, per_instance=True).cost.job(0).stages[1].record_seconds == pytest.approx(0.0025)


def test_the_most_uneven_stage_is_the_jobs_imbalance() -> None:
    rows = tuple(InstanceSample(1.0, 0.0, u) for u in (1.0, 1.0, 4.0))
    held = at(1)
    held = replace(held, stages=(held.stages[0], replace(held.stages[1], instances=rows)))
    assert taught(held).imbalance[0] == pytest.approx(2.0)
