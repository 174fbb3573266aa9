"""Kafka read by Spark's own source, where the connector's version does not fit our classes: Spark plans, we follow.

What is lost: threads and batch sizes change only when the task starts again, and a checkpoint that lost its tail plans
other batches than before (an exactly-once sink then refuses them). What stays: our sink, its commit and its progress,
dead letters, measurements. How far a batch reads is known from the checkpoint, where Spark writes it before it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from penstock.model.errors import ConflictError
from penstock.model.ids import TopicPartition
from penstock.spark.bus import Bus, Reading
from penstock.spark.planner import BatchFacts, TaskLayout, TaskPlanner, TaskStart


def assigned_reader(session: SparkSession, reading: Reading, client: Mapping[str, str]) -> DataStreamReader:
    """Spark's own source over a task's partitions."""
    options = {
        **{f"kafka.{name}": value for name, value in {"fetch.max.wait.ms": "10", **client}.items()},
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({reading.topic: sorted(reading.begin)}),
        "startingOffsets": json.dumps({reading.topic: {str(p): at for p, at in reading.begin.items()}}),
        "minPartitions": str(reading.threads),
        "includeHeaders": "true",
        "failOnDataLoss": "true",
    }
    if reading.limit is not None:
        options["maxOffsetsPerTrigger"] = str(reading.limit)
    return session.readStream.format("kafka").options(**options)


class AssignedPlanner(TaskPlanner):
    """A task's planner that is told what Spark has planned."""

    def __init__(
        self,
        layout: TaskLayout,
        bus: Bus,
        start: TaskStart,
        limit: Callable[[int], int | None],
        checkpoint: Path,
    ) -> None:
        super().__init__(layout, bus, start, limit)
        self._checkpoint = checkpoint

    def commit_write(self, batch_id: int, messages: list[str], dead_letters: str) -> None:
        self._follow(batch_id)
        super().commit_write(batch_id, messages, dead_letters)

    def _follow(self, batch_id: int) -> None:
        """What Spark planned for a batch, as if it had asked."""
        before, now = self._offsets(batch_id - 1), self._offsets(batch_id)
        with self._lock:
            for stream, text in enumerate(now):
                identity = self.layout.streams[stream]
                first = {p.partition: at for p, at in self._initial.items() if p.topic == identity.topic}
                start = first | (_partitions(before[stream]) if before else {})
                ranges = {
                    TopicPartition(identity.topic, p): (start[p], end) for p, end in _partitions(text).items()
                }
                self._planned[stream] = ranges
                self._position.update({place: end for place, (_, end) in ranges.items()})
                count = sum(end - at for at, end in ranges.values())
                self._facts[text] = BatchFacts(
                    self.threads,
                    None,
                    {identity.topic: count},
                    count * self._bus.record_bytes(identity.topic),
                )

    def _offsets(self, batch_id: int) -> list[str]:
        """One offset for each stream, as Spark's checkpoint holds a batch: two lines, then the streams'."""
        file = self._checkpoint / "offsets" / str(batch_id)
        if batch_id < 0:
            return []
        if not file.exists():
            raise ConflictError(
                f"Task {self.layout.task}: its checkpoint does not hold batch {batch_id} any more; "
                f"start the job anew: `penstock reset {self.layout.job.name}`."
            )
        return [line for line in file.read_text().splitlines()[2:] if line != "-"]


def _partitions(text: str) -> dict[int, int]:
    """Offsets per partition, as Spark's own source writes them: {"topic": {"0": 5}}."""
    [offsets] = json.loads(text).values()
    return {int(p): at for p, at in offsets.items()}
