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
