"""On a Spark master a container's executors come and go as its jobs need threads, and nothing is lost or doubled."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

from e2e.commands import Commands
from penstock.spark.standalone import StandaloneCluster, WorkerSize

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

PIPELINE = """
import time

from penstock import job, topic

tickets = topic("tickets", schema="id long", partitions=4)
done = topic("done", schema="id long", partitions=4)


def limited(batches):
    started, passed = time.monotonic(), 0
    for batch in batches:
        passed += batch.num_rows
        time.sleep(max(0.0, started + passed / 50 - time.monotonic()))
        yield batch


@job(reads=tickets, writes=done, trigger="1s", scaling={"policy_interval": "3s", "warm_up_windows": 1})
def work(tickets):
    return tickets.mapInArrow(limited, "id long")
"""


def executors_in(line: str) -> int:
    """How many a decision asks for; 0 in any other line."""
    found = re.search(r"decision: .*executors: (\d+)\.", line)
    return int(found.group(1)) if found else 0


def test_up_and_down(tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    with StandaloneCluster(tmp_path / "cluster", 1, WorkerSize(slots=8, memory="4g")) as cluster:
        settings = {
            "PENSTOCK_SPARK_MASTER": cluster.address,
            "PENSTOCK_SPARK_HEAP": "512m",
            "PENSTOCK_EXECUTORS_MAX": "4",
        }
        commands = Commands(tmp_path, settings)
        running = commands.start("run", str(tmp_path), "--plain")
        try:
            running.until(lambda line: "work: running" in line)
            busy = commands.start(
                "load", "tickets", "--rate", "180/s", "--template", '{"id": {seq}}', "-p", str(tmp_path)
            )
            running.until(lambda line: executors_in(line) > 1)
            busy.interrupt()
            assert busy.end() == 0
            commands.wait_until_read("work")
            running.until(lambda line: executors_in(line) == 1)
            running.interrupt()
            assert running.end() == 0, "\n".join(running.lines)
        finally:
            running.kill()
            busy.kill()
    asked = [executors_in(line) for line in running.lines if executors_in(line)]
    assert asked[0] > 1 and asked[-1] == 1
    sent = Counter(row["id"] for row in commands.records("tickets"))
    assert sent and Counter(row["id"] for row in commands.records("done")) == sent
