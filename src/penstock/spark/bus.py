"""What a task needs of topics, whichever kind: where they end, how to read ranges, how to write and commit.

`LogBus` is the embedded log; Kafka's are in kafka.py. A bus knows formats and files, not when a batch is made or how
many threads it has.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.model.errors import MissingError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.jobs import JobSpec
from penstock.model.records import (
    BatchCommit,
    Chunk,
    CommittedBatch,
    OffsetRange,
    Record,
    Written,
)
from penstock.ports.topics import SegmentLog, Topics

REASON, SOURCE = "penstock.reason", "penstock.source"
"""Headers of a dead letter: why it did not parse, and topic/partition@offset it stood at."""


@dataclass(frozen=True)
class Plan:
    """One JSON value for each Spark partition of a batch, and the bytes that they will read (NaN when not known)."""

    text: str
    bytes_in: float


@dataclass(frozen=True)
class Reading:
    """One stream of a task's run as it starts: where its generation began, and what counts when Spark plans it."""

    stream: str
    topic: str
    begin: Mapping[int, int]
    threads: int
    limit: int | None


@dataclass(frozen=True)
class Committed:
    """What a batch wrote, per output topic."""

    duplicate: bool
    records_out: Mapping[str, int]
    bytes_out: float


@dataclass(frozen=True)
class SinkTask:
    """Who writes: the task's run, and each output topic's partitions, in the order of their ordinals."""

    run: str
    task: TaskId
    outputs: Mapping[str, int]
    commit: Callable[[int, list[str], str], None]
    """For a sink that commits in Python: (batch id, messages, dead letters)."""


class Bus(Protocol):
    @property
    def topics(self) -> Topics: ...

    @property
    def one_host(self) -> bool:
        """True where its records can be reached from this host only."""
        ...

    @property
    def keeps_batches(self) -> bool:
        """True where `committed` knows older batches than the newest."""
        ...

    @property
    def batch_bytes(self) -> int | None:
        """The most that a batch should read where its owner says nothing (bytes)."""
        ...

    @property
    def spark_plans(self) -> bool:
        """True where Spark's own source says how far a batch reads, and not the planner."""
        ...

    @property
    def notice(self) -> str:
        """What an owner should know of how it works here; empty where nothing is special."""
        ...

    def prepare(self, session: SparkSession, job: JobSpec) -> Bus:
        """This bus as one job uses it; an `EnvironmentProblem` when the session lacks what it needs."""
        ...

    def read(self, session: SparkSession, reading: Reading) -> DataFrame:
        """Columns key, value, timestamp (ms), headers, partition, offset."""
        ...

    def plan(self, groups: Sequence[Sequence[OffsetRange]]) -> Plan: ...

    def record_bytes(self, topic: str) -> float:
        """Mean bytes of a record; 0 when not known."""
        ...

    def write(self, frame: DataFrame, sink: SinkTask) -> DataStreamWriter: ...

    def open(
        self, task: TaskId, fence: Fence, places: Sequence[TopicPartition] = ()
    ) -> CommittedBatch | None:
        """Fence off older runs, where the sink can, and say what it committed last; `places` are what the task reads."""
        ...

    def close(self, task: TaskId, fence: Fence) -> None:
        """The task's run has ended, or did not come to start."""
        ...

    def generation(self, job: str, places: Sequence[TopicPartition]) -> int:
        """The job's newest generation that the sink knows of, by those partitions; 0 where it knows none."""
        ...

    def committed(self, task: TaskId, batch_id: int) -> CommittedBatch | None: ...

    def commit(self, commit: BatchCommit, messages: Sequence[str], outputs: Sequence[str]) -> Committed: ...

    def discard(self, messages: Sequence[str]) -> None: ...


class LogBus:
    """The embedded log: one transaction holds what a batch wrote and where it came from."""

    one_host = True
    keeps_batches = True
    batch_bytes = None
    notice = ""
    spark_plans = False

    def __init__(self, log: SegmentLog, *, sync: bool = True) -> None:
        """`sync`: files reach the disk before the commit that names them."""
        self.topics: SegmentLog = log
        self._sync = sync
        segments = Path(log.segment_folder)
        self._segments, self._root = segments, segments.parent

    def prepare(self, session: SparkSession, job: JobSpec) -> Bus:
        return self

    def read(self, session: SparkSession, reading: Reading) -> DataFrame:
        return session.readStream.format("penstock.LogSource").option("stream", reading.stream).load()

    def plan(self, groups: Sequence[Sequence[OffsetRange]]) -> Plan:
        flat = [part for group in groups for part in group]
        located = self.topics.locate(flat)
        size = sum(
            c.length * _overlap(part, c) / c.records
            for part, chunks in zip(flat, located, strict=True)
            for c in chunks
        )
        slices = iter([_slices(part, chunks) for part, chunks in zip(flat, located, strict=True)])
        root = str(self._root)
        plan = [{"root": root, "slices": [s for _ in group for s in next(slices)]} for group in groups]
        return Plan(json.dumps(plan, separators=(",", ":")), size)

    def record_bytes(self, topic: str) -> float:
        info = self.topics.describe(topic)
        return sum(p.size_bytes for p in info.partitions) / info.records if info.records else 0.0

    def write(self, frame: DataFrame, sink: SinkTask) -> DataStreamWriter:
        topics = [{"name": name, "partitions": count} for name, count in sink.outputs.items()]
        return (
            frame.writeStream.format("penstock.LogSource")
            .option("sink", sink.run)
            .option("root", str(self._root))
            .option("segments", str(self._segments))
            .option("producer", str(sink.task))
            .option("sync", str(self._sync).lower())
            .option("topics", json.dumps(topics))
        )

    def open(
        self, task: TaskId, fence: Fence, places: Sequence[TopicPartition] = ()
    ) -> CommittedBatch | None:
        return self.topics.open_producer(str(task), fence)

    def close(self, task: TaskId, fence: Fence) -> None:
        """The log keeps nothing open."""

    def generation(self, job: str, places: Sequence[TopicPartition]) -> int:
        tasks = [str(TaskId(job, index)) for index in range(len(places))]  # each has a partition at least
        batches = [self.topics.committed(task) for task in tasks]
        return max((batch.fence.generation for batch in batches if batch is not None), default=0)

    def committed(self, task: TaskId, batch_id: int) -> CommittedBatch | None:
        return self.topics.committed(str(task), batch_id)

    def commit(self, commit: BatchCommit, messages: Sequence[str], outputs: Sequence[str]) -> Committed:
        written = tuple(w for message in messages for w in _written(json.loads(message), outputs))
        result = self.topics.commit(replace(commit, written=written))
        counts: dict[str, int] = {}
        for w in written:
            counts[w.place.topic] = counts.get(w.place.topic, 0) + w.chunk.records
        return Committed(result.duplicate, counts, sum(w.payload_bytes for w in written))

    def discard(self, messages: Sequence[str]) -> None:
        files = [file for message in messages if (file := json.loads(message)["file"])]
        if files:
            self.topics.discard(files)


def renumbered(held: CommittedBatch, replay: BatchCommit) -> CommittedBatch:
    """The newest batch of a sink that keeps no other, by the numbers of a checkpoint that lost its tail and does all that
    was lost as one batch. Where the newest one took no records it comes again after that, and is known by its number.
    """
    if dict(replay.start) == dict(replay.end):
        return held
    took_none = dict(held.start) == dict(held.end)
    return replace(held, batch_id=min(held.batch_id, replay.batch_id + (1 if took_none else 0)))


def lost_records(place: TopicPartition, at: int, begin: int) -> MissingError:
    """The sentence for records that retention took before they were read."""
    return MissingError(
        f"Offsets {at} to {begin - 1} of {place} are gone unread: retention kept from {begin} on; "
        "`penstock reset JOB` starts the job anew from there; keep records longer (retention.ms, retention.bytes)."
    )


def _overlap(part: OffsetRange, chunk: Chunk) -> int:
    return min(part.end, chunk.base_offset + chunk.records) - max(part.start, chunk.base_offset)


def _slices(part: OffsetRange, chunks: Sequence[Chunk]) -> list[list[Any]]:
    """A range as the Java reader takes it."""
    return [
        [
            c.path,
            c.position,
            c.length,
            c.crc32,
            c.base_offset,
            max(part.start, c.base_offset),
            min(part.end, c.base_offset + c.records),
            part.place.partition,
            part.place.topic,
        ]
        for c in chunks
    ]


def _written(message: Mapping[str, Any], outputs: Sequence[str]) -> list[Written]:
    """What one Spark partition wrote, as the Java writer says it."""
    file = message["file"]
    return [
        Written(
            TopicPartition(outputs[topic], partition),
            Chunk(file, at, length, crc, records, 0),
            payload,
            newest,
        )
        for topic, partition, at, length, crc, records, payload, newest in message["chunks"]
    ]


def read_dead_letters(
    text: str, topics: Sequence[str], planned: Mapping[TopicPartition, tuple[int, int]]
) -> list[tuple[TopicPartition, Record]]:
    """Dead letters that the JVM brought home: once per offset, and only those of the batch at hand."""
    letters: dict[tuple[TopicPartition, int], Record] = {}
    for stream, partition, offset, timestamp, key, value, reason in json.loads(text or "[]"):
        topic = topics[int(stream)]
        place = TopicPartition(topic, partition)
        start, end = planned.get(place, (0, 0))
        if not start <= offset < end:
            continue
        headers = ((REASON, reason.encode()), (SOURCE, f"{topic}/{partition}@{offset}".encode()))
        letters[place, offset] = Record(_bytes(key), _bytes(value), timestamp, headers)
    return [(place, record) for (place, _), record in sorted(letters.items())]


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
