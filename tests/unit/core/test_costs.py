"""A stage's cost per record and per Spark task, told apart by hand-made batches; and the same over columns."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from penstock.core.sizing.costs import (
    DOUBT,
    LEAST_BATCHES,
    SHUFFLED_TASK_SECONDS,
    fit_task_seconds,
    moments_of,
    split_cost,
    unit_share,
)
from penstock.core.sizing.learning import _task_seconds
from penstock.model.observations import CostMoments, StageSample


def batch(
    records: float, tasks: int, record_seconds: float, task_seconds: float
) -> tuple[float, StageSample]:
    useful = records * record_seconds + tasks * task_seconds
    return records, StageSample(0, tasks, None, useful, records, 0.0)


def spread(record_seconds: float, task_seconds: float) -> CostMoments:
    """Batches of quite different records per task."""
    sizes = [(100.0, 8), (1_000.0, 8), (5_000.0, 2), (300.0, 4), (9_000.0, 4)]
    return moments_of(batch(r, n, record_seconds, task_seconds) for r, n in sizes)


@pytest.mark.parametrize(("record", "task"), [(0.001, 0.05), (0.0005, 0.3), (0.01, 0.0)])
def test_both_costs_are_found_where_batches_differ(record: float, task: float) -> None:
    moments = spread(record, task)
    found = fit_task_seconds(moments, 9.9)
    assert found == pytest.approx(task, abs=1e-9)
    each, own = split_cost(moments.records, moments.tasks, moments.useful_seconds, found)
    assert (each, own) == (pytest.approx(record), pytest.approx(task, abs=1e-9))


def test_batches_that_are_too_alike_leave_what_was_known() -> None:
    alike = moments_of(batch(1_000.0 + i, 4, 0.001, 0.05) for i in range(10))
    assert fit_task_seconds(alike, 0.123) == 0.123


def test_few_batches_leave_what_was_known() -> None:
    few = moments_of([batch(100.0, 8, 0.001, 0.05), batch(9_000.0, 2, 0.001, 0.05)])
    assert few.batches < LEAST_BATCHES and fit_task_seconds(few, 0.123) == 0.123


def test_a_cost_is_never_below_zero() -> None:
    """Small batches are cheaper a record than large ones: the fit would pay for each Spark task."""
    rows = [(100.0, 8, 0.01), (1_000.0, 8, 0.9), (5_000.0, 2, 20.0), (300.0, 4, 0.1)]
    stages = [(r, StageSample(0, n, None, u, r, 0.0)) for r, n, u in rows]
    assert fit_task_seconds(moments_of(stages), 0.2) == 0.0
    assert split_cost(1_000.0, 10.0, 5.0, -1.0) == (0.005, 0.0)


def test_a_start_up_is_not_believed() -> None:
    """All time is the tasks', records cost nothing: an accident, not a cost."""
    rows = [(100.0, 8, 8.0), (1_000.0, 8, 8.0), (5_000.0, 2, 2.0), (300.0, 4, 4.0)]
    stages = [(r, StageSample(0, n, None, u, r, 0.0)) for r, n, u in rows]
    assert fit_task_seconds(moments_of(stages), 0.02) == 0.02


def test_tasks_never_explain_all_of_the_time() -> None:
    each, own = split_cost(1_000.0, 10.0, 1.0, 50.0)
    assert own == pytest.approx(0.09) and each == pytest.approx(0.0001)
    assert split_cost(1_000.0, 0.0, 1.0, 50.0) == (0.001, 0.0)


def test_time_too_short_to_measure_weighs_as_a_millisecond() -> None:
    assert moments_of([(10.0, StageSample(0, 1, None, 0.0, 10.0, 0.0))]).useful_seconds == 0.001


def test_columns_fit_the_same() -> None:
    costs = [(0.001, 0.05), (0.01, 0.0), (0.0, 0.4), (0.0005, 0.3)]
    moments = [spread(r, t) for r, t in costs]
    moments.append(moments_of(batch(1_000.0, 4, 0.001, 0.05) for _ in range(6)))
    moments.append(moments_of([batch(100.0, 8, 0.001, 0.05)]))
    rows = np.array(
        [
            (
                m.batches,
                m.records,
                m.tasks,
                m.useful_seconds,
                m.records_squared,
                m.records_tasks,
                m.tasks_squared,
            )
            for m in moments
        ]
    )
    for known in (0.07, 0.0):
        for shuffled in (False, True):
            held = np.full(len(rows), known), np.full(len(rows), shuffled)
            assert _task_seconds(rows, *held).tolist() == [
                pytest.approx(fit_task_seconds(m, known, shuffled=shuffled), abs=1e-9) for m in moments
            ]


def test_behind_a_shuffle_tasks_cost_what_is_usual_until_batches_tell() -> None:
    alike = moments_of(batch(1_000.0, 4, 0.001, 0.05) for _ in range(6))
    assert fit_task_seconds(alike, 0.0, shuffled=True) == SHUFFLED_TASK_SECONDS
    assert fit_task_seconds(alike, 0.0) == 0.0
    assert fit_task_seconds(spread(0.001, 0.05), 0.0, shuffled=True) == pytest.approx(0.05)


def test_noise_is_taken_for_the_cost_that_does_not_grow_with_demand() -> None:
    """Batches of 300 to 2,900 records in two tasks that take a fifth of a second in all, give or take."""
    took = ((375, 0.27), (1822, 0.20), (2760, 0.23), (2760, 0.32), (2851, 0.32), (2871, 0.20))
    m = moments_of((float(n), StageSample(1, 2, 2, u, n, 0.0)) for n, u in took)
    assert fit_task_seconds(m, 0.0, shuffled=True) == pytest.approx(m.useful_seconds / m.tasks)


def least_squares(rows: list[tuple[float, int, float]]) -> tuple[float, float, float, float]:
    """(cost per record, per task, their standard errors) as a textbook has them: a batch weighs 1/U."""
    weight = np.array([1 / math.sqrt(u) for _, _, u in rows])
    table = np.array([(r, n) for r, n, _ in rows]) * weight[:, None]
    took = np.array([u for _, _, u in rows]) * weight
    (per_record, per_task), left, *_ = np.linalg.lstsq(table, took, rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(table.T @ table)) * left[0] / (len(rows) - 2))
    return float(per_record), float(per_task), float(errors[0]), float(errors[1])


NOISY = [(100.0, 8, 0.51), (1_000.0, 8, 1.37), (5_000.0, 2, 5.2), (300.0, 4, 0.49), (9_000.0, 4, 9.1)]
"""About a millisecond for each record and a twentieth of a second for each Spark task, give or take."""


def noisy(rows: list[tuple[float, int, float]]) -> CostMoments:
    return moments_of((r, StageSample(0, n, None, u, r, 0.0)) for r, n, u in rows)


def test_a_cost_of_a_task_is_believed_as_far_as_it_is_beyond_doubt() -> None:
    _, per_task, _, error = least_squares(NOISY)
    assert per_task == pytest.approx(0.05, rel=0.1) and 0 < DOUBT * error < per_task
    assert fit_task_seconds(noisy(NOISY), 0.0) == pytest.approx(per_task - DOUBT * error)


def test_a_cost_of_a_task_that_could_be_noise_is_none() -> None:
    rows = [(r, n, u * f) for (r, n, u), f in zip(NOISY, (1.0, 1.3, 0.8, 0.7, 1.2), strict=True)]
    _, per_task, _, error = least_squares(rows)
    assert 0 < per_task < DOUBT * error
    assert fit_task_seconds(noisy(rows), 0.4) == 0.0


def test_behind_a_shuffle_it_is_the_cost_of_a_record_that_must_be_beyond_doubt() -> None:
    """What records are not proved to cost is the tasks', which does not grow with demand."""
    per_record, per_task, error, _ = least_squares(NOISY)
    held = noisy(NOISY)
    found = fit_task_seconds(held, 0.0, shuffled=True)
    assert found == pytest.approx(
        (held.useful_seconds - (per_record - DOUBT * error) * held.records) / held.tasks
    )
    assert found > per_task


def test_three_batches_leave_one_to_doubt_by() -> None:
    """With as many costs as batches nothing would be left over, so one at least is taken for the spare."""
    rows = NOISY[:2] + NOISY[4:]
    _, per_task, _, error = least_squares(rows)
    assert fit_task_seconds(noisy(rows), 0.0) == pytest.approx(max(0.0, per_task - DOUBT * error))


def test_what_was_known_stands_behind_a_shuffle_too() -> None:
    alike = moments_of(batch(1_000.0, 4, 0.001, 0.05) for _ in range(6))
    assert fit_task_seconds(alike, 0.07, shuffled=True) == 0.07


STAGE = StageSample(0, 40, None, 20.0, 1_000.0, 0.0, longest_seconds=0.5)
"""Ten batches of four Spark tasks, two seconds of useful time each: an even longest is half a second."""


@pytest.mark.parametrize(
    ("stage", "share"),
    [
        (STAGE, 0.0),
        (replace(STAGE, ceiling=4), 0.25),
        (replace(STAGE, longest_seconds=1.0), 0.5),
        (replace(STAGE, longest_seconds=0.74), 0.0),
        (replace(STAGE, longest_seconds=0.75), 0.375),
        (replace(STAGE, longest_seconds=9.0), 1.0),
        (replace(STAGE, spark_tasks=10, longest_seconds=2.0), 0.0),
        (replace(STAGE, useful_seconds=0.0), 0.0),
        (replace(STAGE, useful_seconds=math.nan), 0.0),
    ],
)
def test_the_largest_piece_counts_where_it_is_fixed_or_skewed(stage: StageSample, share: float) -> None:
    assert unit_share(stage, 10) == pytest.approx(share)


def test_no_batches_have_no_largest_piece() -> None:
    assert unit_share(replace(STAGE, ceiling=4), 0) == 0.0
