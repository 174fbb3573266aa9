"""Which batches of a window say what work costs: neither those in which workers started nor those without records; and
when admission was still learning what a batch may hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from fleets import make_job, make_pipeline
from penstock.core.sizing.windows import Windows, observe_samples, start_windows
from penstock.model.ids import TaskId
from penstock.model.jobs import ScalingKnobs
from penstock.model.observations import BatchSample, CostMoments, JobWindow, StageSample


def opened(tasks: int = 1, **options: Any) -> Windows:
    """Windows of ten seconds; L is two."""
    return start_windows(
        make_pipeline(make_job("x", ["a"], ["b"], scaling=ScalingKnobs(), tasks=tasks, **options))
    )


def batch(number: int, records: float = 100.0, useful: float = 1.0, **changes: Any) -> BatchSample:
    """The n-th of two seconds each, back to back."""
    stage = StageSample(0, 2, None, useful, records, records, longest_seconds=useful / 2)
    sample = BatchSample(
        TaskId("x", 0), 0, 0, number, 2.0 * number, 2.0, 1.5, 2,
        {"a": records}, {"b": records}, 0.0, 0.0, (stage,),
    )  # fmt: skip
    return replace(sample, **changes)


def closed_by(samples: Sequence[BatchSample], windows: Windows | None = None) -> list[JobWindow]:
    return list(observe_samples(windows or opened(), samples, [])[1])


def moments(window: JobWindow) -> CostMoments:
    held = window.stages[0].moments
    assert held is not None
    return held


# Cold batches: workers start in them


def test_the_first_batch_of_a_run_is_cold_and_tells_no_cost() -> None:
    """It took nine seconds of start-up; the four that follow, one each: they alone tell what a record costs."""
    (window,) = closed_by([batch(0, useful=9.0), *(batch(i) for i in range(1, 5))])
    told = moments(window)
    assert (told.batches, told.records, told.useful_seconds) == (4.0, 400.0, 4.0)
    assert window.stages[0].useful_seconds == 13.0, "it was time spent all the same"


def test_the_next_window_has_no_cold_batch() -> None:
    first, second = closed_by([batch(i) for i in range(10)])
    assert (moments(first).batches, moments(second).batches) == (4.0, 5.0)


def test_an_epoch_begins_cold() -> None:
    windows, _ = observe_samples(opened(), [batch(i) for i in range(5)], [])
    (window,) = closed_by([batch(i, epoch=1, useful=1.0 + i) for i in range(5, 10)], windows)
    assert moments(window).batches == 4.0 and moments(window).useful_seconds == 7 + 8 + 9 + 10


def test_a_generation_begins_cold_though_its_epochs_count_anew() -> None:
    windows, _ = observe_samples(opened(), [batch(i) for i in range(5)], [])
    newer = [batch(i, started_at=10.0 + 2 * i, generation=1) for i in range(5)]
    (window,) = closed_by(newer, windows)
    assert window.generation == 1 and moments(window).batches == 4.0


@pytest.mark.parametrize(("threads", "warm"), [(3, 4.0), (2, 5.0), (1, 5.0)])
def test_more_threads_start_workers_and_fewer_do_not(threads: int, warm: float) -> None:
    windows, _ = observe_samples(opened(), [batch(i) for i in range(5)], [])
    (window,) = closed_by([batch(i, threads=threads) for i in range(5, 10)], windows)
    assert window.threads == threads and moments(window).batches == warm


def test_a_batch_without_records_starts_no_worker() -> None:
    """The first that has some is the cold one."""
    (window,) = closed_by([batch(0, 0.0), batch(1, 0.0), *(batch(i) for i in range(2, 5))])
    assert moments(window).batches == 2.0


def test_each_task_starts_its_own_workers() -> None:
    rows = [batch(i, task=TaskId("x", task)) for i in range(5) for task in range(2)]
    (window, *_) = closed_by(rows, opened(tasks=2))
    assert window.batches == 9, "it closes at the first commit after its length"
    assert moments(window).batches == 7.0


def test_a_window_of_cold_batches_alone_tells_no_cost() -> None:
    (window,) = closed_by([batch(0, useful=40.0, duration_seconds=47.0)])
    assert window.batches == 1 and moments(window) == CostMoments(0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


# Idle batches: they run other stages than those with records


def test_idle_batches_are_no_part_of_what_work_costs() -> None:
    idle = [batch(i, 0.0, 0.5, duration_seconds=0.6, stage_seconds=0.1) for i in (0, 2)]
    (window,) = closed_by([idle[0], batch(1), idle[1], batch(3), batch(4)])
    assert (window.batches, window.idle_batches) == (3, 2)
    assert (window.overhead_seconds, window.batch_seconds) == (0.5, 2.0)
    assert window.stages[0].useful_seconds == 3.0 and window.stages[0].spark_tasks == 6
    assert (window.started_at, window.ended_at, window.records_in) == (0.0, 10.0, {"a": 300.0})


def test_what_an_idle_batch_wrote_is_written() -> None:
    """A timer that fires brings records out of nothing that came in."""
    (window,) = closed_by([batch(0, 0.0, records_out={"b": 7.0}), *(batch(i) for i in range(1, 5))])
    assert window.records_out == {"b": 407.0}


def test_idle_batches_alone_are_a_window_as_any_other() -> None:
    (window,) = closed_by([batch(i, 0.0, 0.5) for i in range(5)])
    assert (window.batches, window.idle_batches, window.records_in) == (5, 0, {"a": 0.0})
    assert window.stages[0].useful_seconds == 2.5


def test_an_idle_batch_that_took_long_is_not_late() -> None:
    (window,) = closed_by([batch(0, 0.0, duration_seconds=5.0), batch(3), batch(4)])
    assert window.late_batches == 0 and window.idle_batches == 1


# Growing: admission held batches small while it learnt


def grown(*sizes: tuple[float, float], took: float = 1.0, **changes: Any) -> list[BatchSample]:
    """Batches of (records, admitted), the last of them so many seconds long and at the window's end."""
    rows = [
        batch(i, records, admitted=admitted, duration_seconds=took, **changes)
        for i, (records, admitted) in enumerate(sizes)
    ]
    return [*rows[:-1], replace(rows[-1], started_at=10.0)]


DOUBLING = ((100.0, 100.0), (200.0, 200.0), (400.0, 400.0))


def test_batches_that_fill_a_growing_admission_and_take_little_are_still_learning() -> None:
    (window,) = closed_by(grown(*DOUBLING))
    assert window.growing


@pytest.mark.parametrize(
    ("samples", "why"),
    [
        (grown((100.0, 100.0), (100.0, 400.0)), "the last was not filled: there was no more to take"),
        (grown((400.0, 400.0), (480.0, 480.0)), "it grew by less than a quarter: it has settled"),
        (grown(*DOUBLING, took=1.5), "it took three quarters of L: that is how much fits"),
        (grown((100.0, 0.0), (400.0, 0.0)), "no limit was set"),
        (grown((0.0, 100.0), (400.0, 400.0)), "one batch, and one that was idle, have nothing to differ by"),
    ],
)
def test_what_else_may_be_is_not_growing(samples: list[BatchSample], why: str) -> None:
    (window,) = closed_by(samples)
    assert not window.growing, why


def test_an_owner_who_bounds_batches_is_not_waited_for() -> None:
    (window,) = closed_by(grown(*DOUBLING), opened(max_records_per_batch=400))
    assert not window.growing


def test_one_task_that_learns_makes_its_job_learn() -> None:
    other = [batch(i, task=TaskId("x", 1), admitted=100.0) for i in range(4)]
    (window, *_) = closed_by([*other, *grown(*DOUBLING)], opened(tasks=2))
    assert window.growing
