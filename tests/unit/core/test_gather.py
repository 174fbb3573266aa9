"""Windows into columns: what is news, what is not defined, what is wrong and with whom."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fleets import START, make_job, make_pipeline, one_stage, window
from penstock.core.sizing.batch_time import JobCost, StageCost
from penstock.core.sizing.gather import Counters, gather_counters
from penstock.core.sizing.layout import lay_out
from penstock.core.sizing.windows import AHEAD_SECONDS
from penstock.model.observations import (
    STAGE_FACTS,
    WINDOW_FACTS,
    CostMoments,
    InstanceColumns,
    InstanceSample,
    JobWindow,
    Observation,
)

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
LAYOUT = lay_out(make_pipeline(make_job("x", ["a"], ["b", "c"]), make_job("y", ["b"])))
COST = JobCost(0.3, (StageCost(0.001), StageCost(0.0005, ceiling=4)))
X = window("x", COST, 1_000.0, 2, topic="a", out={"b": 10.0, "c": 30.0}, backlog={"a": 7.0})
Y = window("y", one_stage(0.01), 500.0, 1, topic="b")
NOW = X.ended_at
NEVER = np.full(2, -np.inf)


def gather(*windows: JobWindow, seen: np.ndarray[Any, Any] = NEVER) -> tuple[Counters, dict[int, str]]:
    return gather_counters(LAYOUT, Observation(NOW, {w.job: w for w in windows}, {}, {}), seen, now=NOW)


def test_each_number_has_its_column() -> None:
    new, bad = gather(X, Y)
    assert bad == {} and new.rows.tolist() == [0, 1] and new.defined.all()
    assert new.records.tolist() == [1_000.0, 500.0] and new.elapsed.tolist() == [10.0, 10.0]
    assert new.threads.tolist() == [2, 1] and new.batches.tolist() == [5.0, 5.0]
    assert new.overhead.tolist() == [0.3, 0.0] and new.backlog.tolist() == [7.0, 0.0]
    assert new.edge_rows.tolist() == [0, 1] and new.edge_records.tolist() == [10.0, 30.0]
    assert list(zip(new.stage_rows.tolist(), new.stage_places.tolist(), strict=True)) == [
        (0, 0),
        (0, 1),
        (1, 0),
    ]
    assert new.useful.tolist() == [1.0, 0.5, 5.0] and new.ceiling.tolist() == [math.inf, 4.0, math.inf]


def test_only_windows_that_are_new_are_news() -> None:
    seen = np.array([X.ended_at, Y.ended_at - 1])
    assert gather(X, Y, seen=seen)[0].rows.tolist() == [1]
    assert gather(seen=NEVER)[0].rows.tolist() == []


def test_an_output_that_was_not_told_of_is_not_zero() -> None:
    new, bad = gather(replace(X, records_out={"b": 10.0}))
    assert bad == {} and math.isnan(new.edge_records[1])


@pytest.mark.parametrize(
    "idle",
    [
        replace(X, records_in={"a": 0.0}),
        replace(X, stages=()),
        replace(X, stages=tuple(replace(s, useful_seconds=0.0) for s in X.stages)),
        replace(X, started_at=X.ended_at),
        replace(X, batches=0),
    ],
)
def test_no_input_or_no_useful_time_is_undefined_and_no_fault(idle: JobWindow) -> None:
    new, bad = gather(idle)
    assert bad == {} and new.defined.tolist() == [False]


def _stage(**changes: Any) -> JobWindow:
    return replace(X, stages=(replace(X.stages[0], **changes), X.stages[1]))


@pytest.mark.parametrize(
    ("torn", "word"),
    [
        (replace(X, records_in={"a": math.nan}), "records in"),
        (replace(X, started_at=X.ended_at + 5), "elapsed time"),
        (replace(X, ended_at=math.nan), "end"),
        (replace(X, threads=-1), "threads"),
        (replace(X, batches=-1), "batches"),
        (replace(X, overhead_seconds=math.inf), "overhead"),
        (replace(X, backlog={"a": -1.0}), "backlog"),
        (replace(X, backlog_before={"a": math.nan}), "backlog before"),
        (_stage(useful_seconds=-1.0), "useful time"),
        (_stage(spark_tasks=-1), "Spark tasks"),
        (_stage(longest_seconds=math.nan), "longest task"),
        (_stage(records_in=math.nan), "records in"),
        (_stage(instances=(InstanceSample(1.0, 1.0, math.nan),)), "instances"),
        (_stage(instances=(InstanceSample(-1.0, 1.0, 1.0), InstanceSample(1.0, 1.0, 1.0))), "instances"),
    ],
)
def test_a_wrong_number_is_named_and_is_nobody_elses(torn: JobWindow, word: str) -> None:
    new, bad = gather(torn, Y)
    assert list(bad) == [0] and word in bad[0]
    assert new.defined.tolist() == [False, True]


def test_imbalance_is_the_busiest_over_the_mean() -> None:
    rows = [InstanceSample(10.0, 0.0, u) for u in (1.0, 2.0, 6.0)]
    new, _ = gather(_stage(instances=InstanceColumns.of(rows)))
    assert new.imbalance[0] == pytest.approx(2.0) and new.imbalance[1] == pytest.approx(1.0)
    assert math.isnan(gather(Y)[0].imbalance[0]), "one instance has nobody to differ from"


def test_the_mean_rate_is_over_instances_that_worked() -> None:
    """Eq. 5 / p: 10/s, 40/s; the idle one has no rate rather than the rate zero."""
    rows = [InstanceSample(10.0, 0.0, 1.0), InstanceSample(20.0, 0.0, 0.5), InstanceSample(0.0, 0.0, 0.0)]
    new, bad = gather(_stage(instances=rows))
    assert bad == {} and new.mean_rate[0] == pytest.approx(25.0)


def test_columns_and_rows_of_instances_read_the_same() -> None:
    rows = tuple(InstanceSample(10.0 * i, 0.0, 1.0 + i) for i in range(5))
    one, _ = gather(_stage(instances=rows))
    other, _ = gather(_stage(instances=InstanceColumns.of(rows)))
    assert one.mean_rate.tolist()[0] == other.mean_rate.tolist()[0]
    assert one.imbalance.tolist() == other.imbalance.tolist()


def test_stages_without_instances_stand_between_those_with() -> None:
    rows = (InstanceSample(10.0, 0.0, 1.0), InstanceSample(10.0, 0.0, 3.0))
    new, bad = gather(
        replace(X, stages=(replace(X.stages[0], instances=()), replace(X.stages[1], instances=rows))), Y
    )
    assert bad == {} and math.isnan(new.imbalance[0]) and new.imbalance[1] == pytest.approx(1.5)


# What a window writes down when it closes


def test_a_window_writes_its_numbers_down_in_their_order() -> None:
    rows = tuple(InstanceSample(10.0 * i, 99.0, 1.0 + i) for i in range(3))
    held = replace(X, growing=True, stages=(X.stages[0], replace(X.stages[1], instances=rows)))
    width = len(WINDOW_FACTS)
    assert dict(zip(WINDOW_FACTS, held.facts[:width], strict=True)) == {
        "records in": 1_000.0, "elapsed time": 10.0, "end": START + 10, "threads": 2.0, "batches": 5.0,
        "overhead": 0.3, "backlog": 7.0, "backlog before": 0.0, "growing": 1.0,
    }  # fmt: skip
    first, second = np.array(held.facts[width:]).reshape(2, -1).tolist()
    assert first[:6] == [1.0, 10.0, X.stages[0].longest_seconds, 1_000.0, math.inf, 2.0]
    assert second[:6] == [0.5, 20.0, X.stages[1].longest_seconds, 1_000.0, 4.0, 3.0]
    assert all(math.isnan(number) for number in first[6:])
    told = replace(X.stages[0], moments=CostMoments(1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0))
    assert told.facts()[6:] == (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0)
    assert held.instance_facts.tolist() == [0.5, 0.5, 500.0, 500.0, 1.0, 2.0, 3.0, 0.0, 10.0, 20.0]


def test_a_changed_copy_writes_them_down_anew() -> None:
    """Else a window would go on saying what the one that it was made from said."""
    other = replace(X, records_in={"a": 3.0}, stages=X.stages[1:])
    assert other.facts[0] == 3.0 and len(other.facts) == len(WINDOW_FACTS) + len(STAGE_FACTS)
    assert gather(other)[0].records.tolist() == [3.0] and gather(other)[0].useful.tolist() == [0.5]


def test_what_is_written_down_is_no_part_of_what_a_window_is() -> None:
    assert replace(X, threads=3) != X and replace(X) == X and "facts" not in repr(X)


def test_a_stage_without_moments_is_taken_as_one_batch() -> None:
    sums = CostMoments(5.0, 1_000.0, 10.0, 1.0, 4.0, 3.0, 2.0)
    new, _ = gather(_stage(moments=sums), replace(Y, stages=(replace(Y.stages[0], useful_seconds=0.0),)))
    assert new.moments[0].tolist() == [5.0, 1_000.0, 10.0, 1.0, 4.0, 3.0, 2.0]
    r, n, u = 1_000.0, 20.0, 0.5
    assert new.moments[1].tolist() == [1.0, r, n, u, r * r / u, r * n / u, n * n / u]
    assert new.moments[2, 3] == 0.001, "useful time is measured in milliseconds: less weighs as one"


def test_windows_of_many_shapes_keep_their_stages_apart() -> None:
    bare = replace(X, stages=())
    new, _ = gather(bare, Y)
    assert (
        new.stage_rows.tolist() == [1] and new.stage_places.tolist() == [0] and new.useful.tolist() == [5.0]
    )
    new, _ = gather(replace(X, stages=(*X.stages, X.stages[0])), Y)
    assert new.stage_rows.tolist() == [0, 0, 0, 1] and new.stage_places.tolist() == [0, 1, 2, 0]


def test_rates_of_instances_are_left_out_where_nobody_asks() -> None:
    seen = Observation(NOW, {"x": X}, {}, {})
    new, _ = gather_counters(LAYOUT, seen, NEVER, now=NOW, rates=False)
    assert np.isnan(new.mean_rate).all() and new.imbalance.tolist() == gather(X)[0].imbalance.tolist()
    torn = _stage(instances=(InstanceSample(-1.0, 1.0, 1.0), InstanceSample(1.0, 1.0, 1.0)))
    _, bad = gather_counters(LAYOUT, replace(seen, windows={"x": torn}), NEVER, now=NOW, rates=False)
    assert "instances" in bad[0]


# An end in the future


def test_an_end_that_cannot_be_yet_sets_aside_and_is_forgotten() -> None:
    ahead = replace(X, ended_at=NOW + 3_600.0)
    new, bad = gather(ahead, Y)
    assert bad == {0: "its window ends 3600 s from now"} and new.defined.tolist() == [False, True]
    assert math.isnan(new.ended_at[0]) and new.ended_at[1] == Y.ended_at


def test_clocks_may_differ_a_little() -> None:
    new, bad = gather(replace(X, ended_at=NOW + AHEAD_SECONDS))
    assert bad == {} and new.ended_at.tolist() == [NOW + AHEAD_SECONDS]
