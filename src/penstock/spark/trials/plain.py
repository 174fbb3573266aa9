"""Queries as a Spark user writes them by hand: over the log's formats with a fixed plan, files, Kafka, a rate.

A fixed plan answers what the log's source and sink ask and nothing more: as many records a batch, in as many parts, as
it was told; it measures nothing, learns nothing and keeps no house. Whoever runs one gives the session and the topics.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's users write it
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.core.balance.split import split_ranges, take_ranges
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.records import BatchCommit, OffsetRange
from penstock.spark.bus import Bus, Reading, SinkTask
from penstock.spark.hub import PlannerHub, stream_name

FENCE = Fence(1, 1)


@dataclass(frozen=True)
class Copying:
    """One hand-written query from a topic to a topic (or to nowhere)."""

    run: str
    source: str
    target: str = ""
    records: int = 1 << 30
    """In a batch."""
    threads: int = 2


@dataclass(frozen=True)
class Batch:
    """What Spark's own progress says of a batch."""

    started_at: float
    seconds: float
    records: int


class FixedPlan:
    """`spark.hub.BatchPlanner` of one query, without a decision in it."""

    def __init__(self, bus: Bus, copying: Copying) -> None:
        self.error: BaseException | None = None
        self._bus, self._copying = bus, copying
        self._final: dict[TopicPartition, int] | None = None
        self._ranges: list[OffsetRange] = []

    def initial_offset(self, stream: int) -> str:
        return _dump(self._bus.topics.begin_offsets([self._copying.source]))

    def latest_offset(self, stream: int, start: str) -> str:
        at = self._load(start)
        ends = self._final or self._bus.topics.end_offsets([self._copying.source])
        return _dump(take_ranges(at, ends, self._copying.records))

    def plan(self, stream: int, start: str, end: str) -> str:
        first, last = self._load(start), self._load(end)
        self._ranges = [OffsetRange(place, at, last[place]) for place, at in first.items()]
        return self._bus.plan(split_ranges(self._ranges, self._copying.threads)).text

    def commit_read(self, stream: int, end: str, dead_letters: str) -> None:
        """Nobody asks how far it is."""

    def prepare_available_now(self, stream: int) -> None:
        self._final = self._bus.topics.end_offsets([self._copying.source])

    def commit_write(self, batch_id: int, messages: list[str], dead_letters: str) -> None:
        start, end = ({r.place: getattr(r, edge) for r in self._ranges} for edge in ("start", "end"))
        name = self._copying.run
        commit = BatchCommit(str(TaskId(name, 0)), FENCE, batch_id, start, end, name, ())
        self._bus.commit(commit, messages, (self._copying.target,))

    def abort_write(self, batch_id: int, messages: list[str]) -> None:
        self._bus.discard(messages)

    def _load(self, text: str) -> dict[TopicPartition, int]:
        return {TopicPartition(self._copying.source, int(p)): at for p, at in json.loads(text).items()}


def _dump(offsets: Mapping[TopicPartition, int]) -> str:
    return json.dumps({str(place.partition): at for place, at in sorted(offsets.items())})


def read_log(session: SparkSession, bus: Bus, hub: PlannerHub, copying: Copying) -> DataFrame:
    """The log's source with a fixed plan."""
    hub.register(copying.run, FixedPlan(bus, copying))
    reading = Reading(stream_name(copying.run, 0), copying.source, {}, copying.threads, None)
    return bus.read(session, reading)


def write_log(frame: DataFrame, bus: Bus, hub: PlannerHub, copying: Copying) -> DataStreamWriter:
    """The log's sink; a query that reads elsewhere commits with no offsets of its own."""
    planner = hub.planner(copying.run)
    if planner is None:
        planner = FixedPlan(bus, copying)
        hub.register(copying.run, planner)
    partitions = len(bus.topics.describe(copying.target).partitions)
    task = SinkTask(copying.run, TaskId(copying.run, 0), {copying.target: partitions}, planner.commit_write)
    return bus.write(frame.select(F.lit(0).alias("topic"), "key", "value"), task)


def read_kafka(session: SparkSession, servers: str, copying: Copying) -> DataFrame:
    """Spark's own source, from the topic's beginning."""
    reader = session.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", copying.source).option("startingOffsets", "earliest")
    reader = reader.option("maxOffsetsPerTrigger", copying.records).option("minPartitions", copying.threads)
    return reader.option("kafka.fetch.max.wait.ms", "10").load()


def write_kafka(frame: DataFrame, servers: str, target: str) -> DataStreamWriter:
    """Spark's own sink."""
    writer = frame.select("key", "value").writeStream.format("kafka")
    return writer.option("kafka.bootstrap.servers", servers).option("topic", target)


def read_parquet(session: SparkSession, folder: Path, files: int) -> DataFrame:
    """Spark's own source over a folder of Parquet files, so many in a batch."""
    reader = session.readStream.format("parquet").schema("key binary, value binary")
    return reader.option("maxFilesPerTrigger", files).load(str(folder))


def write_parquet(frame: DataFrame, folder: Path) -> DataStreamWriter:
    """Spark's own sink into a folder."""
    return frame.select("key", "value").writeStream.format("parquet").option("path", str(folder))


def write_nowhere(frame: DataFrame) -> DataStreamWriter:
    """Rows are made and dropped."""
    return frame.writeStream.format("noop")


def make_rows(session: SparkSession, records: int, parts: int) -> DataFrame:
    """Spark's generator: so many rows in each batch, a key and a value of a hundred bytes that looks like an event."""
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", records)
    rows = rows.option("numPartitions", parts).load()
    number = F.col("value").cast("string")
    pieces = (
        *(F.lit('{"id":'), number, F.lit(',"user":"'), F.substring(F.md5(number.cast("binary")), 1, 16)),
        *(F.lit('","price":'), (F.col("value") % 9973).cast("string"), F.lit(',"at":"2026-01-01T00:00:')),
        *(F.lpad((F.col("value") % 60).cast("string"), 2, "0"), F.lit('Z","state":"ordered"}')),
    )
    return rows.select(number.cast("binary").alias("key"), F.concat(*pieces).cast("binary").alias("value"))


def touch(frame: DataFrame) -> DataFrame:
    """A predicate that every row passes, so that no sink may leave values unread."""
    return frame.where("length(value) > 5")


def run_now(writer: DataStreamWriter, checkpoint: Path, seconds: float) -> list[Batch]:
    """Work through what is there, then end."""
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination(seconds)
    query.stop()
    return batches_of(query)


def run_batches(writer: DataStreamWriter, checkpoint: Path, count: int, seconds: float) -> list[Batch]:
    """One batch after another until there were so many."""
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    deadline = time.monotonic() + seconds
    while query.isActive and time.monotonic() < deadline:
        newest = query.lastProgress
        if newest is not None and newest.batchId >= count - 1:
            break
        time.sleep(0.02)
    error = query.exception()
    query.stop()
    if error is not None:
        raise error
    return batches_of(query)[:count]


def batches_of(query: StreamingQuery) -> list[Batch]:
    """Batches that had records, oldest first."""
    return read_progress(list(query.recentProgress))


def read_progress(progress: list[Any]) -> list[Batch]:
    """Spark's progress as batches; those without records are left out."""
    found = [
        Batch(
            datetime.fromisoformat(p.timestamp.replace("Z", "+00:00")).timestamp(),
            p.durationMs.get("triggerExecution", 0) / 1000,
            p.numInputRows,
        )
        for p in progress
    ]
    return [batch for batch in found if batch.records > 0]


def shout(frame: DataFrame) -> DataFrame:
    """What the managed job does, by hand: text from bytes, a function, bytes again."""
    lines = frame.where("value is not null").select(F.col("value").cast("string").alias("line"))
    shouted = lines.select(F.upper("line").alias("line"))
    return shouted.select(
        F.lit(None).cast("binary").alias("key"), F.col("line").cast("binary").alias("value")
    )
