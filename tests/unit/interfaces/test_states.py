"""A run's state in words and cells: what is shown, what is left out, and a line for each change."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from penstock.interfaces.states import (
    COLUMNS,
    describe_changes,
    describe_graph,
    describe_memory,
    format_clock,
    job_cells,
)
from penstock.model.status import JobStatus, RunHeader, RunStatus

NAN = math.nan
JOB = JobStatus("split", "running", 2, 2, 155.0, 3_100.0, 160.0, 300.0, 1_234.0, 7.9, 1.75, 12, 0, 0)
STATUS = RunStatus(60.0, "running", (JOB,), 8, 1, 3 << 30, 200 << 20, 1 << 30)


def header(*edges: tuple[str, str, str], jobs: tuple[str, ...] = ("a", "b")) -> RunHeader:
    return RunHeader("r1", "p", "p.py", "embedded", "penstock", 0.0, jobs, edges)


def test_a_job_is_a_line_of_cells() -> None:
    cells = job_cells(JOB)
    assert tuple(cells) == COLUMNS
    assert cells == {
        "job": "split",
        "state": "running",
        "in": "155/s",
        "out": "3,100/s",
        "offered": "160/s",
        "capacity": "300/s",
        "backlog": "1,234",
        "lag": "7.9 s",
        "threads": "2",
        "batch": "1.8 s",
        "batches": "12",
    }


def test_what_is_not_known_is_a_dash_and_what_never_ends_says_so() -> None:
    unknown = job_cells(
        replace(JOB, rate_in=NAN, capacity=NAN, backlog=NAN, lag_seconds=NAN, batch_seconds=NAN)
    )
    assert {unknown[name] for name in ("in", "capacity", "backlog", "lag", "batch")} == {"-"}
    assert job_cells(replace(JOB, lag_seconds=math.inf))["lag"] == "∞"


def test_proposals_and_restarts_stand_beside_what_is() -> None:
    cells = job_cells(replace(JOB, proposed=5, restarts=3))
    assert (cells["threads"], cells["state"]) == ("2 → 5", "running (3 restarts)")


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "00:00"), (125.9, "02:05"), (3_725, "1:02:05"), (-5, "00:00"), (NAN, "00:00")]
)
def test_clocks(seconds: float, text: str) -> None:
    assert format_clock(seconds) == text


def test_memory_and_slots_in_one_line() -> None:
    assert describe_memory(STATUS) == "memory 3 GB, heap 200 MB of 1 GB; 2 threads on 8 slots"
    assert describe_memory(replace(STATUS, executors=3)).endswith("8 slots, 3 executors")


@pytest.mark.parametrize(
    ("edges", "lines"),
    [
        ([("", "in", "a"), ("a", "mid", "b"), ("b", "out", "")], ["in → a → mid → b → out"]),
        ([("", "in", "a"), ("", "in", "b")], ["in → a", "in → b"]),
        ([("", "x", "a"), ("", "y", "b"), ("a", "z", "")], ["x → a → z", "y → b"]),
        ([("", "in", "a"), ("a", "l", "b"), ("a", "r", "b")], ["in → a → l → b", "a → r → b"]),
        ([], ["a, b"]),
    ],
)
def test_graphs_are_chains_with_each_edge_once(edges: list[tuple[str, str, str]], lines: list[str]) -> None:
    assert describe_graph(header(*edges)) == lines


def test_a_loop_in_the_graph_ends() -> None:
    assert describe_graph(header(("a", "x", "b"), ("b", "y", "a"))) == ["a → x → b → y → a"]


def test_the_first_status_tells_phase_and_jobs() -> None:
    assert describe_changes(None, STATUS, "00:01") == ["00:01 running", "00:01 split: running, 2 threads"]


def test_nothing_new_is_no_line() -> None:
    assert describe_changes(STATUS, replace(STATUS, at=61.0, rss_bytes=5), "00:02") == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"state": "draining"}, "running -> draining"),
        ({"state": "failed", "note": "no disk"}, "running -> failed: no disk"),
        ({"state": "drained", "note": "needs more"}, "running -> drained"),
        (
            {"threads": 5, "proposed": 5},
            "threads 2 -> 5 (in 155/s of 160/s offered, capacity 300/s, lag 7.9 s)",
        ),
        ({"proposed": 5}, "5 threads proposed, 2 now (in"),
        ({"restarts": 1}, "restart 1"),
        ({"dead_letters": 7}, "7 records did not parse"),
    ],
)
def test_each_change_is_a_line(changes: dict[str, Any], words: str) -> None:
    (line,) = describe_changes(STATUS, replace(STATUS, jobs=(replace(JOB, **changes),)), "00:09")
    assert line.startswith("00:09 split: ") and words in line
    assert changes.get("state") != "drained" or "needs more" not in line


def test_a_decision_is_told_once() -> None:
    decided = replace(STATUS, decision="Threads: split 2 -> 5.")
    assert describe_changes(STATUS, decided, "00:09") == ["00:09 decision: Threads: split 2 -> 5."]
    assert describe_changes(decided, replace(decided, at=99.0), "00:10") == []


def test_a_proposal_is_told_once() -> None:
    asked = replace(STATUS, jobs=(replace(JOB, proposed=5),))
    assert len(describe_changes(STATUS, asked, "00:09")) == 1
    assert describe_changes(asked, replace(asked, at=99.0), "00:10") == []


def test_phases_are_told() -> None:
    assert describe_changes(STATUS, replace(STATUS, phase="draining"), "00:09") == ["00:09 draining"]
