"""What a journal says of sizing: only changes count, only within the stretch asked for."""

from __future__ import annotations

import math

import pytest

from penstock.bench.sizes import read_sizing
from penstock.bench.wordcount import in_words, metrics_of, plan, rows_of, schedule_of
from penstock.model.decisions import Decision, ScaleExecutors, ScaleThreads
from penstock.model.status import JobStatus, RunStatus


def status(at: float, split: int, count: int, lag: float = 0.0) -> RunStatus:
    jobs = tuple(
        JobStatus(name, "running", threads, threads, 1, 1, 1, 1, 0, behind, 1, 1, 0, 0)
        for name, threads, behind in (("split", split, 0.5), ("count", count, lag))
    )
    return RunStatus(at, "running", jobs, 40, 1, 0, 0, 0)


def decision(at: float, *actions: ScaleThreads | ScaleExecutors) -> Decision:
    return Decision(f"d{at:g}", at, "penstock", "scale" if actions else "hold", "why", (), actions)


STATUSES = [status(0, 1, 1), status(60, 10, 20, 7.0), status(120, 10, 20, 1.5), status(180, 5, 10)]
DECISIONS = [
    decision(5),
    decision(50, ScaleThreads("split", 10, "d"), ScaleThreads("count", 20, "d")),
    decision(70, ScaleExecutors(2, "d")),
    decision(150, ScaleThreads("split", 5, "d")),
]


def test_a_stretch_is_read_by_itself() -> None:
    up = read_sizing(STATUSES, DECISIONS, 0.0, 120.0)
    assert (up.decisions, up.settled_seconds, up.lag_seconds) == (1, 50.0, 1.5)
    assert up.sizes == {"split": 10, "count": 20}
    assert up.instance_minutes == pytest.approx(2 * 1 + 30 * 1)
    down = read_sizing(STATUSES, DECISIONS, 120.0, 180.0)
    assert (down.decisions, down.settled_seconds, down.sizes["split"]) == (1, 30.0, 5)


def test_a_stretch_without_news_claims_nothing() -> None:
    none = read_sizing([], [], 0.0, 10.0)
    assert none.decisions == 0
    assert none.sizes == {}
    assert math.isnan(none.lag_seconds)
    assert "0 changes" in in_words(none)


def test_every_metric_of_every_other_strategy_is_a_row() -> None:
    phases, strategies = plan("ds2-two-phases", quick=False)
    sizing = read_sizing(STATUSES, DECISIONS, 0.0, 120.0)
    rows = rows_of("ds2-two-phases", phases, {name: [sizing, sizing] for name in strategies})
    assert len(rows) == len(phases) * (len(strategies) - 1) * len(metrics_of(sizing))
    assert {row["peer_name"] for row in rows} == {"ds2", "dhalion"}
    assert {row["ratio"] for row in rows if row["peer"]} == {1.0}


def test_phases_follow_each_other_in_the_load() -> None:
    phases, _ = plan("ds2-two-phases", quick=True)
    schedule = schedule_of(phases)
    first, second = phases
    assert schedule.rate_at(first.seconds - 1) == first.rate
    assert schedule.rate_at(first.seconds + 1) == second.rate
    assert schedule.rate_at(first.seconds + second.seconds) == 0
    assert schedule.records_by(1e9) == first.rate * first.seconds + second.rate * second.seconds


def test_all_strategies_take_part() -> None:
    assert plan("ds2-wordcount", quick=False)[1] == ("penstock", "ds2", "dhalion", "spark_dynamic_allocation")
