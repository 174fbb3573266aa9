"""A container with exactly-once jobs on Kafka that a test kills, until all of its input is through.

    python crashing_kafka.py FOLDER SERVERS PREFIX JARS [POINT:N]     with a point, it ends itself and its JVM there

Prints READY when its tasks run and DONE when nothing is left.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

from penstock import job, topic
from penstock.adapters.kafka import KafkaTopics
from penstock.authoring.registry import collecting
from penstock.spark.executors import FixedSlots
from penstock.spark.frames import JobCode
from penstock.spark.host import Host
from penstock.spark.kafka import KafkaBus
from penstock.spark.session import ContainerSettings, start_session


def declare(prefix: str) -> None:
    source = topic(f"{prefix}.in", schema="id long", partitions=4)
    copied = topic(f"{prefix}.copied", schema="id long, at long", partitions=3)
    drawn = topic(f"{prefix}.drawn", schema="k long, n long", key="k", partitions=3)
    options = {
        "reads": source,
        "trigger": 0.05,
        "max_records_per_batch": 300,
        "state_partitions": 2,
        "exactly_once": True,
    }

    @job(name=f"{prefix}-copy", writes=copied, threads=3, **options)
    def copy(rows):
        """Another value in every attempt, for about half of the records none at all."""
        drawn = rows.selectExpr("id", "cast(hash(uuid()) as long) as at")
        return drawn.where("id % 2 = 0 or at % 2 = 0")

    @job(name=f"{prefix}-draw", writes=drawn, mode="update", threads=2, **options)
    def draw(rows):
        return (
            rows.selectExpr("pmod(cast(hash(uuid()) as long), 5) as k")
            .groupBy("k")
            .count()
            .withColumnRenamed("count", "n")
        )


def die_at(point: str):
    name, _, times = point.partition(":")
    left = [int(times)]

    def faults(reached: str) -> None:
        if reached == name:
            left[0] -= 1
            if left[0] == 0:
                os.killpg(0, signal.SIGKILL)

    return faults


def main() -> None:
    folder, servers, prefix, jars = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4].split(",")
    faults = die_at(sys.argv[5]) if len(sys.argv) > 5 else lambda step: None
    topics = KafkaTopics(servers)
    bus = KafkaBus(topics, {"bootstrap.servers": servers}, faults=faults)
    settings = ContainerSettings(work=folder / "work", slots=4, heap="700m", jars=tuple(map(Path, jars)))
    session = start_session(settings)
    host = Host(session, folder / "checkpoints", FixedSlots(4))
    with collecting() as registry:
        declare(prefix)
    declared = {t.name: t for t in registry.topics}
    for entry in registry.jobs:
        host.add(JobCode(entry.spec, declared, entry.function, None), bus)
    print("READY", flush=True)
    while True:
        now = time.time()
        for event in host.tick(now):
            print(event.kind.upper(), event.text, flush=True)
        host.collect(now)
        ends = topics.end_offsets([f"{prefix}.in"])
        if all(topics.progress(entry.spec.name, entry.spec.input_topics) == ends for entry in registry.jobs):
            break
        time.sleep(0.05)
    host.drain(30.0)
    print("DONE", flush=True)
    session.stop()


if __name__ == "__main__":
    main()
