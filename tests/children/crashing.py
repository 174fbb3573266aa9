"""A container that a test kills: three jobs over one topic, until all of it is through.

    python crashing.py FOLDER [POINT:N]     with a point, it ends itself and its JVM there, the N-th time

Prints READY when its tasks run and DONE when nothing is left.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from penstock import job, topic
from penstock.adapters.log import EmbeddedLog
from penstock.authoring.registry import collecting
from penstock.spark.bus import LogBus
from penstock.spark.executors import FixedSlots
from penstock.spark.frames import JobCode
from penstock.spark.host import Host
from penstock.spark.session import ContainerSettings, start_session

INTERVAL = 0.05
BATCH = 400


def declare() -> None:
    source = topic("in", schema="id long", partitions=4)
    copied = topic("copied", schema="id long, at long", partitions=3)
    counted = topic("counted", schema="k long, n long", key="k", partitions=3)
    drawn = topic("drawn", schema="k long, n long", key="k", partitions=3)
    options = {"reads": source, "trigger": INTERVAL, "max_records_per_batch": BATCH, "state_partitions": 3}

    @job(writes=copied, threads=3, **options)
    def copy(rows):
        return rows.selectExpr("id", "cast(hash(uuid()) as long) as at")

    @job(writes=counted, mode="update", threads=2, **options)
    def count(rows):
        return rows.selectExpr("id % 7 as k").groupBy("k").count().withColumnRenamed("count", "n")

    @job(writes=drawn, mode="update", threads=2, **options)
    def draw(rows):
        """A replay draws other keys: state of a failed attempt must not survive it."""
        return (
            rows.selectExpr("pmod(cast(hash(uuid()) as long), 5) as k")
            .groupBy("k")
            .count()
            .withColumnRenamed("count", "n")
        )


def die_at(point: str, times: int):
    left = [times]

    def faults(reached: str) -> None:
        if reached == point:
            left[0] -= 1
            if left[0] == 0:
                os.killpg(0, signal.SIGKILL)

    return faults


def main() -> None:
    folder = Path(sys.argv[1])
    point, _, times = sys.argv[2].partition(":") if len(sys.argv) > 2 else ("", "", "")
    log = EmbeddedLog(folder / "log", durable=False, faults=die_at(point, int(times)) if point else None)
    session = start_session(ContainerSettings(work=folder / "work", slots=4, heap="700m"))
    host = Host(session, folder / "checkpoints", FixedSlots(4))
    with collecting() as registry:
        declare()
    topics = {t.name: t for t in registry.topics}
    for entry in registry.jobs:
        host.add(JobCode(entry.spec, topics, entry.function, None), LogBus(log, sync=False))
    print("READY", flush=True)
    while True:
        now = time.time()
        for event in host.tick(now):
            print(event.kind.upper(), event.text, flush=True)
        host.collect(now)
        ends = log.end_offsets(["in"])
        if all(log.progress(name, ["in"]) == ends for name in ("copy", "count", "draw")):
            break
        time.sleep(0.05)
    host.drain(30.0)
    print("DONE", flush=True)
    session.stop()


if __name__ == "__main__":
    main()
