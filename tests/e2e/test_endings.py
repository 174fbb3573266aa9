"""How runs end that do not end well: each with a sentence, an exit code, and nothing lost."""

from __future__ import annotations

import json
import os
import signal
from collections import Counter
from pathlib import Path

import psutil
import pytest

from e2e.commands import Commands

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(300)]

PIPELINE = """
from penstock import job, topic

given = topic("given", schema="id long", partitions=2)
taken = topic("taken", schema="id long", partitions=2)


@job(reads=given, writes=taken, trigger="500ms")
def copy(rows):
    return rows
"""


@pytest.fixture
def commands(tmp_path: Path) -> Commands:
    folder = tmp_path / "a folder with spaces"
    folder.mkdir()
    (folder / "pipeline.py").write_text(PIPELINE)
    return Commands(folder, {"PENSTOCK_SPARK_SLOTS": "4", "PENSTOCK_SPARK_HEAP": "600m"})


def produce(commands: Commands, start: int, end: int) -> None:
    values = [json.dumps({"id": i}) for i in range(start, end)]
    done = commands.run("topic", "produce", "given", *values, "-p", str(commands.project))
    assert done.returncode == 0, done.stderr


def test_a_killed_jvm_is_said_and_the_next_run_goes_on_exactly(commands: Commands) -> None:
    project = str(commands.project)
    first = commands.start("run", project, "--plain")
    try:
        first.until(lambda line: "copy: running" in line)
        second = commands.run("run", project)
        assert second.returncode == 4 and "is going on already" in second.stderr
        produce(commands, 0, 40)
        commands.wait_until_read("copy")
        [jvm] = [p for p in psutil.Process(first.pid).children() if "java" in p.name()]
        os.kill(jvm.pid, signal.SIGKILL)
        assert first.end() == 1
        assert any("Spark's JVM has ended (exit code -9" in line for line in first.lines), first.lines
    finally:
        first.kill()
    produce(commands, 40, 80)
    again = commands.run("run", project, "--available-now")
    assert again.returncode == 0, again.stderr
    assert Counter(row["id"] for row in commands.records("taken")) == Counter(range(80))


def test_a_job_whose_function_is_wrong_starts_nothing(commands: Commands) -> None:
    text = (
        (commands.project / "pipeline.py").read_text().replace("return rows", 'return rows.select("nothing")')
    )
    (commands.project / "pipeline.py").write_text(text)
    done = commands.run("run", str(commands.project))
    assert done.returncode == 2
    assert "pipeline.py:10" in done.stderr and "nothing" in done.stderr and "Traceback" not in done.stderr


def change(commands: Commands, before: str, after: str) -> None:
    file = commands.project / "pipeline.py"
    assert before in file.read_text()
    file.write_text(file.read_text().replace(before, after))


FAILS = "return rows.where(\"assert_true(id < 3, 'too large') is null\")"


def test_a_job_that_fails_again_and_again_is_no_success(commands: Commands) -> None:
    """However the run ends: when its time is over, or when it was to work through what is there."""
    project = str(commands.project)
    change(commands, "return rows", FAILS)
    commands.run("topic", "create", "given", "--partitions", "2", "-p", project)
    produce(commands, 0, 6)
    timed = commands.run("run", project, "--plain", "--for", "15s")
    assert timed.returncode == 1, timed.stdout
    last = timed.stderr.splitlines()[-1]
    assert last.startswith("The run failed: copy: copy-0 failed: ") and "too large" in last
    assert "starts again" not in last and timed.stdout.count("copy-0 failed: ") >= 1
    given_up = commands.run("run", project, "--plain", "--available-now")
    assert given_up.returncode == 1, given_up.stdout
    assert "copy-0 is given up: 3 starts in a row committed no batch." in given_up.stdout
    assert given_up.stderr.splitlines()[-1].startswith("The run failed: copy: copy-0 failed: ")
    change(commands, FAILS, "return rows")
    mended = commands.run("run", project, "--available-now")
    assert mended.returncode == 0, mended.stderr
    assert Counter(row["id"] for row in commands.records("taken")) == Counter(range(6))


def test_a_run_begins_with_the_sizes_that_the_one_before_left(commands: Commands) -> None:
    project = str(commands.project)
    change(commands, 'trigger="500ms"', 'trigger="500ms", threads=3')
    first = commands.run("run", project, "--available-now", "--plain")
    assert first.returncode == 0 and "copy: " in first.stdout
    noted = commands.project / ".penstock" / "sizes.json"
    assert json.loads(noted.read_text()) == {"copy": [3, 3]}
    noted.write_text('{"copy": [2, 3]}')
    second = commands.start("run", project, "--plain", "--for", "3s")
    try:
        assert "2 threads" in second.until(lambda line: " copy: " in line)
        assert second.end() == 0
    finally:
        second.kill()
    told = [
        json.loads(line) for line in max(commands.project.rglob("journal.jsonl")).read_text().splitlines()
    ]
    texts = [entry["text"] for entry in told if entry.get("kind") == "size"]
    assert texts == ["copy begins with 2 threads, as the run before left it."]


SECOND = """

more = topic("more", schema="id long", partitions=2)


@job(reads=taken, writes=more, trigger="500ms")
def again(rows):
    return rows
"""


def test_a_chain_is_worked_through_and_a_job_starts_anew(commands: Commands) -> None:
    project = str(commands.project)
    change(commands, "return rows\n", f"return rows\n{SECOND}")
    commands.run("topic", "create", "given", "--partitions", "2", "-p", project)
    produce(commands, 0, 10)
    once = commands.run("run", project, "--available-now")
    assert once.returncode == 0, once.stderr
    assert Counter(row["id"] for row in commands.records("more")) == Counter(range(10))
    # The topic between them is made anew: the jobs that know it refuse, and say what to do.
    deleted = commands.run("topic", "delete", "taken", "--yes", "-p", project)
    assert "It was read by again" in deleted.stdout, deleted.stderr
    produce(commands, 10, 14)
    refused = commands.run("run", project, "--available-now")
    assert refused.returncode == 1 and "`penstock reset again`" in refused.stderr, refused.stderr
    anew = commands.run("reset", "again", "--yes", "-p", project)
    assert anew.returncode == 0, anew.stderr
    done = commands.run("run", project, "--available-now")
    assert done.returncode == 0, done.stderr
    assert Counter(row["id"] for row in commands.records("more")) == Counter(range(14))
