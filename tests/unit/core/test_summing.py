"""Stages of many batches as one: sums, means, peaks, instances side by side and on top of each other."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.sizing.summing import sum_stages
from penstock.model.ids import TaskId
from penstock.model.observations import BatchSample, InstanceSample, StageSample


def stage(
    ordinal: int, useful: float, tasks: int = 2, ceiling: int | None = None, **more: Any
) -> StageSample:
    rows = tuple(InstanceSample(10.0 * (i + 1), 1.0, useful / tasks) for i in range(tasks))
    return StageSample(ordinal, tasks, ceiling, useful, 100.0, 50.0, instances=rows, **more)


def batch(number: int, *stages: StageSample, task: int = 0, records: float = 100.0) -> BatchSample:
    return BatchSample(
        TaskId("x", task), 0, 0, number, 0.0, 1.0, 0.9, 2, {"a": records}, {}, 0.0, 0.0, stages
    )  # fmt: skip


def test_sums_are_sums_longest_is_a_mean_and_a_peak_a_maximum() -> None:
    first = stage(0, 2.0, longest_seconds=1.0, peak_memory_bytes=7.0, gc_seconds=0.5, wasted_seconds=0.1)
    second = stage(0, 4.0, longest_seconds=3.0, peak_memory_bytes=5.0, gc_seconds=0.25, wasted_seconds=0.2)
    (found,) = sum_stages([batch(1, first), batch(2, second)])
    assert (found.useful_seconds, found.spark_tasks, found.records_in, found.records_out) == (
        6.0,
        4,
        200.0,
        100.0,
    )
    assert (found.longest_seconds, found.peak_memory_bytes, found.gc_seconds) == (2.0, 7.0, 0.75)
    assert found.wasted_seconds == pytest.approx(0.3)


def test_every_ordinal_is_a_stage_and_missing_ones_are_left_out() -> None:
    found = sum_stages([batch(1, stage(0, 1.0), stage(2, 1.0)), batch(2, stage(0, 1.0))])
    assert [(s.ordinal, s.useful_seconds) for s in found] == [(0, 2.0), (2, 1.0)]
    assert found[1].moments is not None and found[1].moments.batches == 1


def test_batches_of_a_task_lie_on_top_of_each_other_and_tasks_side_by_side() -> None:
    rows = [batch(1, stage(0, 2.0)), batch(2, stage(0, 2.0, tasks=3)), batch(1, stage(0, 8.0), task=1)]
    (found,) = sum_stages(rows)
    assert [i.records_in for i in found.instances] == [20.0, 40.0, 30.0, 10.0, 20.0]
    assert [i.useful_seconds for i in found.instances] == pytest.approx([5 / 3, 5 / 3, 2 / 3, 4.0, 4.0])


def test_ceilings_of_tasks_add_up_and_one_without_has_none_for_all() -> None:
    (found,) = sum_stages([batch(1, stage(0, 1.0, ceiling=4)), batch(1, stage(0, 1.0, ceiling=8), task=1)])
    assert found.ceiling == 12
    (found,) = sum_stages([batch(1, stage(0, 1.0, ceiling=4)), batch(1, stage(0, 1.0), task=1)])
    assert found.ceiling is None


def test_moments_are_of_records_that_the_job_took_in() -> None:
    (found,) = sum_stages([batch(1, stage(0, 2.0), records=10.0), batch(2, stage(0, 2.0), records=30.0)])
    assert found.moments is not None
    assert (found.moments.records, found.moments.tasks, found.moments.useful_seconds) == (40.0, 4.0, 4.0)
    assert found.moments.records_squared == pytest.approx((100 + 900) / 2)


def test_the_order_of_batches_says_nothing() -> None:
    rows = [batch(i, stage(0, 1.0 + i), stage(1, 2.0)) for i in range(4)]
    assert sum_stages(rows) == sum_stages(rows[::-1])


def test_nothing_sums_to_nothing() -> None:
    assert sum_stages([]) == () and sum_stages([batch(1)]) == ()
