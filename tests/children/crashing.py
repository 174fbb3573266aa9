"""A container that a test kills: three jobs over one topic, on the embedded log or with transactions on Kafka.

    python crashing.py FOLDER PREFIX [--servers HOST:PORT --jars A,B] [--die POINT:N] [--finish]

Topics and jobs begin with PREFIX. With `--die` it ends itself and its JVM at that step of a commit, the N-th time it
comes there. It never ends by itself, except with `--finish`, once nothing is left to do. With Spark up it waits for a line
to begin, so that the next one may get ready while this one runs.
Prints READY when its tasks run, MOVING when each job has committed and DONE when nothing is left.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path

from penstock import job, topic
from penstock.adapters.kafka import KafkaTopics
from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.faults import no_faults
from penstock.authoring.registry import collecting
from penstock.spark.bus import Bus, LogBus
from penstock.spark.executors import FixedSlots
from penstock.spark.frames import JobCode
from penstock.spark.host import Host
from penstock.spark.kafka import KafkaBus
from penstock.spark.session import ContainerSettings, start_session

Faults = Callable[[str], None]

BATCH = 100
"""Small, so that much of the input is left whenever the container is killed."""
LAST_BATCH = 2_000
SHORT_LIFE = {
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}
"""What is killed after seconds gains nothing from code that is compiled well."""


def declare(prefix: str, *, exactly_once: bool, batch: int) -> None:
    source = topic(f"{prefix}.in", schema="id long", partitions=4)
    copied = topic(f"{prefix}.copied", schema="id long, at long", partitions=3)
    counted = topic(f"{prefix}.counted", schema="k long, n long", key="k", partitions=3)
    drawn = topic(f"{prefix}.drawn", schema="k long, n long", key="k", partitions=3)
    options = {
        "reads": source,
        "trigger": 0.05,
        "max_records_per_batch": batch,
        "state_partitions": 2,
        "exactly_once": exactly_once,
    }

    @job(name=f"{prefix}-copy", writes=copied, threads=3, **options)
    def copy(rows):
        """Another value in every attempt, and for about half of the records a second row with the id below zero."""
        valued = rows.selectExpr("id", "cast(hash(uuid()) as long) as at")
        return valued.selectExpr("explode(if(at % 2 = 0, array(id), array(id, -id - 1))) as id", "at")

    @job(name=f"{prefix}-count", writes=counted, mode="update", threads=2, **options)
    def count(rows):
        return rows.selectExpr("id % 7 as k").groupBy("k").count().withColumnRenamed("count", "n")

    @job(name=f"{prefix}-draw", writes=drawn, mode="update", threads=2, **options)
    def draw(rows):
        """A replay draws other keys: state of a failed attempt must not survive it."""
        drawn = rows.selectExpr("pmod(cast(hash(uuid()) as long), 5) as k")
        return drawn.groupBy("k").count().withColumnRenamed("count", "n")


def die_at(point: str) -> Faults:
    name, _, times = point.partition(":")
    left = [int(times)]

    def faults(reached: str) -> None:
        if reached == name:
            left[0] -= 1
            if left[0] == 0:
                os.killpg(0, signal.SIGKILL)

    return faults


def open_bus(folder: Path, servers: str, faults: Faults) -> Bus:
    if servers:
        return KafkaBus(KafkaTopics(servers), {"bootstrap.servers": servers}, faults=faults)
    return LogBus(EmbeddedLog(folder / "log", durable=False, faults=faults), sync=False)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("prefix")
    parser.add_argument("--servers", default="")
    parser.add_argument("--jars", default="")
    parser.add_argument("--die", default="")
    parser.add_argument("--finish", action="store_true")
    given = parser.parse_args()
    session = start_session(
        ContainerSettings(
            work=given.folder / f"work-{os.getpid()}",
            slots=4,
            heap="700m",
            jars=tuple(Path(jar) for jar in given.jars.split(",") if jar),
            conf=SHORT_LIFE,
        )
    )
    parent = os.getppid()
    if not sys.stdin.readline():
        return
    bus = open_bus(given.folder, given.servers, die_at(given.die) if given.die else no_faults)
    host = Host(session, given.folder / "checkpoints", FixedSlots(4))
    with collecting() as registry:
        declare(given.prefix, exactly_once=bool(given.servers), batch=LAST_BATCH if given.finish else BATCH)
    declared = {t.name: t for t in registry.topics}
    for entry in registry.jobs:
        host.add(JobCode(entry.spec, declared, entry.function, None), bus)
    print("READY", flush=True)

    def is_through() -> bool:
        ends = bus.topics.end_offsets([f"{given.prefix}.in"])
        return all(
            bus.topics.progress(entry.spec.name, entry.spec.input_topics) == ends for entry in registry.jobs
        )

    still = {entry.spec.name for entry in registry.jobs}
    while not (given.finish and is_through()):
        if os.getppid() != parent:  # whoever was to kill it is gone
            os.killpg(0, signal.SIGKILL)
        now = time.time()
        for event in host.tick(now):
            print(event.kind.upper(), event.text, flush=True)
        moved = {batch.task.job for batch in host.collect(now).batches}
        if still and not still - moved:
            print("MOVING", flush=True)
        still -= moved
        time.sleep(0.05)
    host.drain(30.0)
    print("DONE", flush=True)
    session.stop()


if __name__ == "__main__":
    main()
