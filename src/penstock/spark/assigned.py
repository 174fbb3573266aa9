"""Kafka read by Spark's own source, where the connector's version does not fit our classes: Spark plans, we follow.

What is lost: threads and batch sizes change only when the task starts again, and a checkpoint that lost its tail plans
other batches than before (an exactly-once sink then refuses them). What stays: our sink, its commit and its progress,
dead letters, measurements. How far a batch reads is known from the checkpoint, where Spark writes it before it runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamReader

from penstock.model.errors import ConflictError
from penstock.model.ids import TopicPartition
from penstock.spark.bus import Bus, Reading
from penstock.spark.offsets import batch_ends
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
            for stream, text in now.items():
                identity = self.layout.streams[stream]
                first = {p.partition: at for p, at in self._initial.items() if p.topic == identity.topic}
                start = first | (_partitions(before[stream]) if stream in before else {})
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

    def _offsets(self, batch_id: int) -> dict[int, str]:
        """Where a batch ends in each stream, as Spark's checkpoint holds it."""
        if batch_id < 0:
            return {}
        try:
            return self.stream_ends(batch_ends(self._checkpoint, batch_id))
        except FileNotFoundError:
            raise ConflictError(
                f"Task {self.layout.task}: its checkpoint does not hold batch {batch_id} any more; "
                f"start the job anew: `penstock reset {self.layout.job.name}`."
            ) from None

    def stream_ends(self, ends: Sequence[str]) -> dict[int, str]:
        """By the topic that they name: Spark's plan has sources in its own order, and some that are no topics."""
        streams: dict[str, list[int]] = {}
        for number, stream in enumerate(self.layout.streams):
            streams.setdefault(stream.topic, []).append(number)
        found: dict[int, str] = {}
        for text in ends:
            ours = streams.get(_topic(text))
            if ours:
                found[ours.pop(0)] = text
        return found

    def offsets_in(self, stream: int, text: str) -> dict[int, int]:
        return _partitions(text)


def _topic(text: str) -> str:
    """The topic whose offsets these are, as Spark's own source writes them ({"topic": {"0": 5}}); empty for another
    source's.
    """
    held: Any = json.loads(text) if text.startswith("{") else None
    names = list(held) if isinstance(held, dict) else []
    return names[0] if len(names) == 1 and isinstance(held[names[0]], dict) else ""


def _partitions(text: str) -> dict[int, int]:
    [offsets] = json.loads(text).values()
    return {int(p): at for p, at in offsets.items()}
