"""A small world for tests on real Spark: a log, a host, and jobs declared in place.

`World.run` starts jobs; `settle` turns the host's crank until everything that was produced is committed.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.adapters.log import EmbeddedLog
from penstock.authoring.registry import collecting
from penstock.model.ids import TopicPartition
from penstock.model.observations import BatchSample
from penstock.model.records import Record
from penstock.model.status import RunEvent
from penstock.spark.bus import Bus, LogBus
from penstock.spark.executors import FixedSlots
from penstock.spark.frames import JobCode
from penstock.spark.host import Host

INTERVAL = 0.2


class World:
    def __init__(self, spark: SparkSession, folder: Path, bus: Bus | None = None) -> None:
        self.spark, self.folder = spark, folder
        self._log = EmbeddedLog(folder / "log", durable=False) if bus is None else None
        self.bus: Bus = bus if bus is not None else LogBus(self._log)  # type: ignore[arg-type]
        self.topics = self.bus.topics
        self.host = Host(spark, folder / "checkpoints", FixedSlots(8))
        self.samples: list[BatchSample] = []
        self.events: list[RunEvent] = []

    def declare(self, declare: Callable[[], Any]) -> list[JobCode]:
        """Jobs that a function declares, as a pipeline file would."""
        with collecting() as registry:
            declare()
        topics = {t.name: t for t in registry.topics}
        for entry in registry.jobs:
            topics.update({t.name: t for t in entry.topics})
        return [
            JobCode(e.spec, topics, e.function, e.foreach, folder=str(Path(__file__).parent))
            for e in registry.jobs
        ]

    def run(self, declare: Callable[[], Any], **options: Any) -> list[JobCode]:
        codes = self.declare(declare)
        for code in codes:
            self.host.add(code, self.bus, **options)
        return codes

    def restart(self, codes: Iterable[JobCode], **options: Any) -> None:
        """The same jobs in a new host, as a new process would run them."""
        self.host.stop()
        self.host = Host(self.spark, self.folder / "checkpoints", FixedSlots(8))
        for code in codes:
            self.host.add(code, self.bus, **options)

    def produce(self, topic: str, rows: Iterable[Mapping[str, Any]], key: str | None = None) -> int:
        rows = list(rows)
        records = [
            Record(None if key is None else str(row[key]).encode(), json.dumps(row).encode(), 1_000 * i)
            for i, row in enumerate(rows)
        ]
        self.topics.append(topic, records)
        return len(records)

    def rows(self, topic: str) -> list[dict[str, Any]]:
        """All records of a topic, decoded, by partition and offset."""
        return [json.loads(r.record.value) for r in self.stored(topic)]  # type: ignore[arg-type]

    def stored(self, topic: str) -> list[Any]:
        found = []
        for info in self.topics.describe(topic).partitions:
            found += self.topics.read(info.place, info.begin, 10_000_000)
        return found

    def latest(self, topic: str, key: str, value: str) -> dict[Any, Any]:
        """An upsert topic as the table it stands for."""
        table: dict[Any, Any] = {}
        for row in self.rows(topic):
            table[row[key]] = row[value]
        return table

    def turn(self) -> None:
        now = time.time()
        self.events += self.host.tick(now)
        measured = self.host.collect(now)
        self.samples += measured.batches

    def settle(self, seconds: float = 60.0, jobs: Iterable[str] | None = None) -> None:
        """Until no job has a backlog; a failure that is not being healed is raised at once."""
        names = set(jobs) if jobs is not None else None
        deadline = time.time() + seconds
        quiet = 0
        while time.time() < deadline:
            self.turn()
            measured = self.host.collect(time.time())
            self.samples += measured.batches
            read = [p for p in measured.partitions if names is None or p.job in names]
            # Asked here: a host that cannot reach its topics goes by the ends that it saw last.
            ends = self.topics.end_offsets(sorted({p.place.topic for p in read}))
            left = sum(max(0, ends[p.place] - p.committed) for p in read)
            quiet = quiet + 1 if left == 0 else 0
            if quiet >= 3:
                return
            time.sleep(0.05)
        states = {name: self.host.state(name) for name in self.host.threads()}
        raise AssertionError(f"not settled: {states}, {[str(e.text) for e in self.events[-3:]]}")

    def until(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        deadline = time.time() + seconds
        while not condition():
            assert time.time() < deadline, [e.text for e in self.events[-3:]]
            self.turn()
            time.sleep(0.02)

    def close(self) -> None:
        self.host.stop()
        if self._log is not None:
            self._log.close()


def counted(rows: Iterable[Any]) -> Counter[Any]:
    return Counter(rows)


def place(topic: str, partition: int) -> TopicPartition:
    return TopicPartition(topic, partition)
