"""The tables of benchmarks on Spark, from measurements made up: names, goals, and what is left out where Kafka is not."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from penstock.bench import log_speed, managed, reaction, streams
from penstock.bench.processes import Usage, measure_trees
from penstock.bench.turns import alternate

FIELDS = ["name", "unit", "ours", "peer", "peer_name", "ratio", "goal", "met"]


@dataclass(frozen=True)
class Batch:
    started_at: float
    seconds: float
    records: int


def test_rates_count_full_batches_from_the_second_on() -> None:
    batches = [Batch(0, 1, 10), Batch(1, 1, 100), Batch(2, 1, 100), Batch(4, 1, 100), Batch(5, 9, 3)]
    assert managed.rate_of(batches, 100) == pytest.approx(200 / 3)
    assert managed.span_rate([]) != managed.span_rate([])


def test_the_log_is_held_against_files_and_shown_beside_kafka() -> None:
    steps: dict[str, float] = dict.fromkeys(log_speed.STEPS, 100.0)
    small = {"log": 70.0, "log, unsynced": 55.0, "rate": 60.0, "rate, default": 120.0}
    rows = log_speed.rows_of(
        {"log": steps, "log, unsynced": steps, "parquet": {**steps, "read": 200.0}, "small": small}
    )
    assert all(list(row) == FIELDS for row in rows)
    met = {(row["name"], row["peer_name"]): row["met"] for row in rows}
    assert met["log, written", "Spark's Parquet files"] is True
    assert met["log, read", "Spark's Parquet files"] is False
    assert met["log, read", "Kafka, Spark's source and sink"] is None
    [fixed] = [row for row in rows if row["goal"] == "<= 1.2"]
    assert fixed["ratio"] == pytest.approx(70 / 60)


def test_streams_stand_beside_their_limits_and_beside_applications() -> None:
    ours = {"cores": 0.5, "pss_bytes": 1 << 30, "batch_seconds": 0.2}
    rows = streams.rows_of(ours, Usage(0.2, 1 << 30), 0.4)
    assert [(row["peer_name"], row["met"]) for row in rows[:3]] == [
        ("limit", True),
        ("limit", True),
        ("limit", False),
    ]
    assert [row["peer"] for row in rows[3:]] == pytest.approx([10.0, 2.0, 400.0])
    assert all(row["met"] is None for row in rows[3:])


def test_changes_count_the_batches_that_came_in_between() -> None:
    decided = [(10.0, 4), (20.0, 2), (30.0, 6)]
    batches = [(at, n, 0.25) for at, n in ((9.0, 1), (10.5, 4), (11.0, 4), (20.5, 4), (21.0, 2), (30.5, 2))]
    between, seconds = reaction.judge_changes(decided, batches)
    assert between == [0.0, 1.0, 1.0]
    assert seconds == [0.75, 1.25]
    rows = reaction.rows_of_threads({"between": between, "seconds": seconds, "restart_seconds": [1.0]})
    assert [row["met"] for row in rows] == [False, False, None, None]
    kept = reaction.rows_of_threads({"between": [0.0], "seconds": [0.5], "restart_seconds": [1.0]})
    assert [row["met"] for row in kept] == [True, True, None, None]


def test_turns_alternate_and_begin_with_another_each_time() -> None:
    assert alternate(["a", "b"], 2) == ["a", "b", "b", "a"]


def test_a_tree_that_is_gone_uses_nothing() -> None:
    assert measure_trees([2**22 + 1], 0.01) == Usage(0.0, 0)


def test_being_managed_has_its_goal_where_batches_are_large() -> None:
    found = {str(managed.LARGE): {"managed": [97.0, 98.0, 10.0], "plain": [100.0]}}
    found[str(managed.SMALL)] = {"managed": [50.0], "plain": [100.0]}
    assert [row["met"] for row in managed.rows_of("log", found)] == [True, None]
    left_out = managed.rows_of("kafka", None)
    assert [(row["met"], row["goal"]) for row in left_out] == [(None, ">= 0.97"), (None, None)]
