"""How sessions and generations begin: what cannot work is refused in a sentence, what must not move stays."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock import job, topic
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark

FOREIGN = """
import sys
from pathlib import Path
from pyspark.sql import SparkSession
from penstock.model.errors import EnvironmentProblem
from penstock.spark.java import find_java
from penstock.spark.session import ContainerSettings, start_session
import os
os.environ["JAVA_HOME"] = str(find_java(Path(sys.argv[1])).path)
SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
try:
    start_session(ContainerSettings(work=Path(sys.argv[1])))
except EnvironmentProblem as problem:
    print("REFUSED", problem)
"""


def test_a_session_without_our_jar_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FOREIGN, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "REFUSED This process already has a Spark session without penstock's jar" in done.stdout, (
        done.stderr
    )


def test_a_generations_first_offsets_are_written_once(world: World) -> None:
    """A job begins at what is kept; a restart before its first commit begins there too, whatever came meanwhile."""

    def declare() -> None:
        given = topic("in", schema="id long", partitions=1)
        target = topic("out", schema="id long", partitions=1)

        @job(reads=given, writes=target, trigger=INTERVAL)
        def copy(rows):
            return rows

    codes = world.declare(declare)
    world.topics.create("in", 1)
    world.produce("in", [{"id": i} for i in range(10)])
    world.topics.commit_progress("copy", {next(iter(world.topics.end_offsets(["in"]))): 10})
    for code in codes:
        world.host.add(code, world.bus)
    world.host.stop()
    # Somebody moves the reader on: the generation has begun, so that must not matter any more.
    world.produce("in", [{"id": i} for i in range(10, 20)])
    world.topics.commit_progress("copy", {next(iter(world.topics.end_offsets(["in"]))): 20})
    world.restart(codes)
    world.settle()
    assert sorted(row["id"] for row in world.rows("out")) == list(range(10, 20))
