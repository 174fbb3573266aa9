"""Running, and asking afterwards: run, demo, runs, report, explain, probe."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.files.journal import FileJournal
from penstock.app.runs import ProjectRuns
from penstock.interfaces.cli.runs import describe_result
from penstock.model.status import RunEvent, RunHistory

START = 1_790_000_000.0


def test_a_run_is_shown_closed_and_reported(command: Any, services: Any, make_run: Any) -> None:
    run = make_run("ended")
    answer = command("run", "p.py", "--strategy", "ds2", "--set", "spark.slots=8", "--report", "out.html")
    assert answer.code == 0 and run.closed and not run.drained
    assert "sentences → split → words → count → counts" in answer.out
    assert "wordcount: ended after 01:00" in answer.out
    assert "Report: out.html" in answer.out and "starting Spark" in answer.err
    (request,) = services.requests
    assert (request.strategy, request.overrides, request.pipeline) == (
        "ds2",
        {"spark.slots": "8"},
        Path("p.py"),
    )
    for file in (services.folder / "out.html", run.folder / "report.html"):
        assert file.read_text().startswith("<!doctype html>")


def test_a_run_ends_after_its_time(command: Any, make_run: Any) -> None:
    run = make_run("running")
    assert command("run", "p.py", "--for", "60s").code == 0
    assert run.drained and run.closed


def test_an_unclean_end_is_said(command: Any, make_run: Any) -> None:
    run = make_run("running")
    run.drain_work = lambda: False
    answer = command("run", "p.py", "--for", "0s")
    assert answer.code == 0 and "stopped inside a batch" in answer.err


def test_a_failed_run_says_why_and_ends_with_one(command: Any, make_run: Any) -> None:
    run = make_run("failed", state="failed", note="no disk")
    answer = command("run", "p.py")
    assert answer.code == 1 and "The run failed: split: no disk." in answer.err and run.closed


def test_a_failure_that_came_again_and_again_is_said_once(
    command: Any, services: Any, make_run: Any, history: RunHistory
) -> None:
    run = make_run("failed", state="failed", note="split-0 failed: no disk.")
    for second in range(3):
        run._journal.write(RunEvent(START + second, "failed", "split-0 failed: no disk.", "split"))
        run._journal.write(RunEvent(START + second, "retry", f"split-0 starts again in {second} s.", "split"))
    run._journal.write(RunEvent(START + 4, "given_up", "split-0 is given up.", "split"))
    answer = command("run", "p.py")
    assert answer.out.splitlines()[-2:] == ["split-0 failed: no disk. (3 times)", "split-0 is given up."]
    assert "starts again" not in answer.out + answer.err
    assert answer.err.splitlines()[-1] == "The run failed: split: split-0 failed: no disk."


def test_an_error_while_it_drains_closes_the_run(command: Any, make_run: Any) -> None:
    def broken() -> bool:
        raise OSError("no disk")

    run = make_run("running")
    run.drain_work = broken
    answer = command("run", "p.py", "--for", "0s")
    assert answer.code == 70 and "OSError: no disk" in answer.err and run.closed


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--for", "soon"), "is not a duration"),
        (("--report", "nowhere/out.html"), "is in a folder that is not there"),
        (("--set", "spark.slots"), "is not name=value"),
        (("--report", "."), "is a folder; name a file, like report.html"),
        (("--set", "spark.slots=1", "--set", "spark.slots=2"), "gives spark.slots a second time"),
    ],
)
def test_what_cannot_be_asked_is_refused_before_anything_starts(
    command: Any, services: Any, make_run: Any, words: tuple[str, ...], text: str
) -> None:
    make_run("ended")
    answer = command("run", "p.py", *words)
    assert answer.code == 2 and text in answer.err and services.requests == []


def test_a_run_may_be_named_by_its_project(command: Any, services: Any, make_run: Any) -> None:
    for words in ((), ("--project", "shop"), ("shop",)):
        make_run("ended")
        assert command("run", *words).code == 0
    assert [str(request.pipeline) for request in services.requests] == [".", "shop", "shop"]


def test_a_run_in_a_folder_of_its_own_is_reported_too(
    command: Any, services: Any, make_run: Any, history: RunHistory
) -> None:
    make_run("ended")
    held = replace(history, statuses=(replace(history.statuses[60], phase="ended"),))
    services.run = type(services.run)(held, services.folder / "elsewhere" / "runs")
    answer = command("run", "p.py", "--set", "store.folder=elsewhere", "--report", "out.html")
    assert answer.code == 0, answer.err
    assert (services.folder / "out.html").is_file() and (services.run.folder / "report.html").is_file()


@pytest.mark.parametrize(
    "words", [("runs",), ("report",), ("explain", "count"), ("probe", "--output", "wide")], ids=lambda w: w[0]
)
def test_runs_of_a_profile_with_its_own_folder_are_found_by_its_name(
    command: Any, services: Any, history: RunHistory, words: tuple[str, ...]
) -> None:
    journal = FileJournal(services.folder / "big" / "runs", history.header.run)
    for entry in (history.header, *history.statuses[:3], *history.decisions):
        journal.write(entry)
    journal.close()
    found, missing = command(*words, "--profile", "big"), command(*words)
    assert found.code == 0, found.err
    assert missing.code == 3 or "No run yet" in missing.out


def test_the_table_at_the_end_says_what_lag_is(command: Any, make_run: Any) -> None:
    make_run("ended")
    assert "lag: backlog / best processing rate known" in command("run", "p.py").out


def test_the_demo_is_a_run(command: Any, make_run: Any) -> None:
    run = make_run("ended")
    answer = command("demo", "here")
    assert answer.code == 0 and "wordcount: ended" in answer.out and run.closed


# Afterwards


def test_runs_are_listed(command: Any, journalled: Any) -> None:
    answer = command("runs")
    assert "r20260922-080000-wordcount" in answer.out and "split, count" in answer.out
    assert "01:49" in answer.out and "RESULT" in answer.out
    (row,) = command("runs", "-o", "json").json()
    assert row["run"] == "r20260922-080000-wordcount" and row["jobs"] == ["split", "count"]
    assert row["last_at"] == row["started_at"] + 109


@pytest.mark.parametrize(
    ("phase", "ago", "result"),
    [
        ("ended", 1.0, "ended"),
        ("failed", 1e6, "failed"),
        ("running", 1.0, "running"),
        ("running", 60.0, "lost"),
        ("draining", 60.0, "lost"),
    ],
)
def test_how_a_run_ended_is_its_last_word(history: RunHistory, phase: Any, ago: float, result: str) -> None:
    last = replace(history.statuses[-1], phase=phase)
    assert describe_result(last, last.at + ago) == result
    assert describe_result(None, 0.0) == "not started"


def test_the_last_status_is_found_in_a_long_journal(journalled: Any, history: RunHistory) -> None:
    """Beyond the first block that is read from its end."""
    journal = FileJournal(journalled.folder / "runs", history.header.run)
    for number in range(40):
        journal.write(RunEvent(1.0, "note", "x" * 10_000, details=str(number)))
    journal.close()
    runs = ProjectRuns(journalled.folder / "runs")
    assert runs.last_status(history.header.run) == history.statuses[-1]
    empty = FileJournal(journalled.folder / "runs", "r-empty")
    empty.write(replace(history.header, run="r-empty"))
    empty.close()
    assert runs.last_status("r-empty") is None


def test_without_runs_nothing_is_listed_and_nothing_explained(command: Any) -> None:
    assert "No run yet" in command("runs").out and command("runs", "-o", "json").json() == []
    for words in (("explain", "split"), ("probe",), ("report",)):
        answer = command(*words)
        assert answer.code == 3 and answer.err.count("\n") == 1


def test_a_report_is_written_where_it_is_asked(command: Any, journalled: Any) -> None:
    answer = command("report", "--to", "r.html")
    assert answer.out == "r.html\n" and "<svg" in (journalled.folder / "r.html").read_text()
    refused = command("report", "--to", "nowhere/r.html")
    assert refused.code == 6 and "could not be written" in refused.err


def test_the_newest_decision_about_a_job_is_explained(command: Any, journalled: Any) -> None:
    answer = command("explain", "split", "--newest")
    assert answer.code == 0 and "decision d-105 at 01:45" in answer.out
    for text in (
        "need = the least p with D(p) <= L",
        "target rate",
        "1,440/s",
        "selectivity to words",
        "true rate",
    ):
        assert text in answer.out


def test_a_change_tells_more_than_a_quiet_round(command: Any, journalled: Any) -> None:
    answer = command("explain", "split")
    assert answer.out.startswith("now, at 01:45: 10 threads. split must take in")
    assert "decision d-75 at 01:15" in answer.out
    assert "done: split has 5 threads from its next batch on" in answer.out
    assert "ScaleThreads" not in answer.out and "nan" not in answer.out
    both = command("explain", "split", "--changed", "--newest")
    assert both.code == 2 and "keep one of the two" in both.err


def test_a_decision_can_be_asked_for(command: Any, journalled: Any) -> None:
    changed = command("explain", "split", "--changed", "-o", "json").json()
    assert changed["decision"]["id"] == "d-75" and changed["proposal"]["proposed"] == 5
    assert changed["decision"]["actions"][0] == {
        "kind": "ScaleThreads",
        "job": "split",
        "threads": 5,
        "cause": "d-75",
    }
    one = command("explain", "count", "--decision", "d-21")
    assert "decision d-21 at 00:21" in one.out and "done: " in one.out and "passed over: rung 1" in one.out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("explain", "nobody"), "there are: split, count"),
        (("explain", "split", "--decision", "d-9"), "no decision 'd-9'"),
        (("explain", "split", "--run", "nothing"), "nothing"),
        (("probe", "--run", "nothing"), "nothing"),
        (("report", "nothing"), "nothing"),
        (("report", "--run", "nothing"), "nothing"),
    ],
)
def test_what_is_not_there_is_said(command: Any, journalled: Any, words: tuple[str, ...], text: str) -> None:
    answer = command(*words)
    assert answer.code == 3 and text in answer.err and answer.err.count("\n") == 1


def test_the_probe_shows_jobs_stages_and_container(command: Any, journalled: Any) -> None:
    answer = command("probe")
    assert answer.code == 0
    for text in ("wordcount, run", "jobs", "stages", "container", "TRUE RATE", "HEAP USED"):
        assert text in answer.out, text


def test_the_probe_fits_a_terminal_and_has_more_when_asked(command: Any, journalled: Any) -> None:
    command("topic", "create", "sentences", "--partitions", "4")
    narrow, wide = command("probe").out, command("probe", "-o", "wide").out
    assert max(len(line) for line in narrow.splitlines()) <= 100
    for column in ("GC S", "PYTHON S", "SPILLED", "PARTITION "):
        assert column not in narrow and column in wide, column
    assert "PARTITIONS" in narrow


def test_the_probe_as_json_has_true_rates(command: Any, journalled: Any) -> None:
    told = command("probe", "-o", "json").json()
    split = next(row for row in told["jobs"] if row["job"] == "split")
    assert (
        split["threads"] == 5
        and split["batch_s"] == pytest.approx(1.9)
        and split["h_s"] == pytest.approx(0.2)
    )
    first = next(row for row in told["stages"] if row["job"] == "split" and row["stage"] == 0)
    assert first["true_rate"] == pytest.approx(200.0) and first["skew"] == pytest.approx(2.0)
    assert told["backlog"] == [] and told["container"][0]["slots"] == 32


def test_the_probe_looks_over_the_newest_seconds_only(command: Any, journalled: Any) -> None:
    few, all_ = (command("probe", "--over", over, "-o", "json").json() for over in ("5s", "1h"))
    counts = [sum(row["batches"] for row in told["jobs"]) for told in (few, all_)]
    assert 0 < counts[0] < counts[1] == 18


def test_backlog_of_a_partition_is_what_is_not_committed(command: Any, journalled: Any) -> None:
    command("topic", "create", "sentences", "--partitions", "1")
    command("topic", "produce", "sentences", "a", "b", "c")
    (row,) = command("probe", "-o", "json").json()["backlog"]
    assert (row["job"], row["end"], row["committed"], row["backlog"]) == ("split", 3, 0, 3)
