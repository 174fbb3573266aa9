"""Kafka as a bus: read by its connector's reader with our plan, written by our sink, at least once.

A batch that is replayed after a crash is written again, never more than the last one; a job that asks for exactly-once
gets `TransactionalBus` (transactions.py). Progress is published as a consumer group after the records, so that usual lag
tools see it. Where the connector's version does not fit our classes, Spark's own source reads (assigned.py).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's users write it
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.model.errors import EnvironmentProblem
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.jobs import JobSpec
from penstock.model.records import BatchCommit, CommittedBatch, OffsetRange
from penstock.ports.topics import Topics
from penstock.spark.assigned import assigned_reader
from penstock.spark.bus import Bus, Committed, Plan, Reading, SinkTask, lost_records
from penstock.spark.session import jvm

FORMAT = "penstock.KafkaSource"
ReadBy = Literal["auto", "penstock", "spark"]
_SERIAL = "org.apache.kafka.common.serialization.ByteArray"
_SAMPLED = 20
"""Records of each partition that tell a topic's mean size."""


class KafkaBus:
    """Topics of a Kafka cluster; `client` are settings of Kafka's Java clients (servers, security)."""

    one_host = False
    keeps_batches = False

    batch_bytes: int | None = None
    notice = ""

    def __init__(
        self,
        topics: Topics,
        client: Mapping[str, str],
        *,
        read_by: ReadBy = "auto",
        faults: Callable[[str], None] = lambda step: None,
    ) -> None:
        """`read_by`: who plans the reading; `auto` takes Spark's own source where our classes do not fit.
        `faults` is told each step of a transaction, for tests that end the process there.
        """
        self.topics = topics
        self.client, self.read_by, self.faults = dict(client), read_by, faults
        self.spark_plans = read_by == "spark"
        # The broker's default long poll of 500 ms would be waited for in every small batch.
        self._reader = {
            "fetch.max.wait.ms": "10",
            **client,
            "key.deserializer": f"{_SERIAL}Deserializer",
            "value.deserializer": f"{_SERIAL}Deserializer",
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
            "isolation.level": "read_committed",
            "group.id": "penstock-executor",
        }
        self._writer = {
            "linger.ms": "5",
            "acks": "all",
            "max.request.size": str(32 << 20),
            **client,
            "key.serializer": f"{_SERIAL}Serializer",
            "value.serializer": f"{_SERIAL}Serializer",
        }
        self._sizes: dict[str, float] = {}

    def prepare(self, session: SparkSession, job: JobSpec) -> Bus:
        from penstock.spark.transactions import TransactionalBus  # which is made of this class

        lacks = lacking(session)
        if lacks and self.read_by == "penstock":
            raise EnvironmentProblem(
                f"Kafka's connector in this session is of a version that cannot be planned from here ({lacks}); "
                "fetch the one that fits with `penstock kafka-jars`, or let Spark's own source read."
            )
        self.spark_plans = self.read_by == "spark" or bool(lacks)
        if self.spark_plans:
            why = f"the connector's version does not fit ours ({lacks})" if lacks else "as it was asked to"
            self.notice = (
                f"Spark's own source reads Kafka here, {why}: threads and batch sizes change only when a task starts "
                "again."
            )
        if job.options.exactly_once and job.output_topics:
            return TransactionalBus(self, session, job)
        return self

    def read(self, session: SparkSession, reading: Reading) -> DataFrame:
        if self.spark_plans:
            frame = assigned_reader(session, reading, self.client).load()
        else:
            reader = session.readStream.format(FORMAT).option("stream", reading.stream)
            frame = reader.option("client", json.dumps(self._reader)).load()
        return frame.withColumn("timestamp", F.unix_millis("timestamp"))

    def plan(self, groups: Sequence[Sequence[OffsetRange]]) -> Plan:
        flat = [part for group in groups for part in group]
        self._check_kept(flat)
        plan = [[_slice(part) for part in group] for group in groups]
        size = sum(part.records * self.record_bytes(part.place.topic) for part in flat)
        return Plan(json.dumps(plan, separators=(",", ":")), size)

    def _check_kept(self, ranges: Sequence[OffsetRange]) -> None:
        begins = self.topics.begin_offsets(sorted({part.place.topic for part in ranges}))
        for part in ranges:
            if part.start < begins.get(part.place, 0):
                raise lost_records(part.place, part.start, begins[part.place])

    def record_bytes(self, topic: str) -> float:
        known = self._sizes.get(topic)
        if known is None:
            known = self._sample(topic)
            if known > 0:
                self._sizes[topic] = known
        return known

    def _sample(self, topic: str) -> float:
        sizes: list[int] = []
        for part in self.topics.describe(topic).partitions[:4]:
            start = max(part.begin, part.end - _SAMPLED)
            for found in self.topics.read(part.place, start, _SAMPLED) if part.end > part.begin else ():
                sizes.append(len(found.record.key or b"") + len(found.record.value or b""))
        return sum(sizes) / len(sizes) if sizes else 0.0

    def write(self, frame: DataFrame, sink: SinkTask) -> DataStreamWriter:
        writer = named_topics(frame, sink.outputs).writeStream.format(FORMAT)
        return writer.option("sink", sink.run).option("client", json.dumps(self._writer))

    def open(
        self, task: TaskId, fence: Fence, places: Sequence[TopicPartition] = ()
    ) -> CommittedBatch | None:
        return None

    def close(self, task: TaskId, fence: Fence) -> None:
        """Producers are the executors' own."""

    def generation(self, job: str, places: Sequence[TopicPartition]) -> int:
        return 0

    def committed(self, task: TaskId, batch_id: int) -> CommittedBatch | None:
        return None

    def commit(self, commit: BatchCommit, messages: Sequence[str], outputs: Sequence[str]) -> Committed:
        for place, letter in commit.records:
            self.topics.append(place.topic, [letter], place.partition)
        self.topics.commit_progress(commit.reader, commit.end)
        return written(messages)

    def discard(self, messages: Sequence[str]) -> None:
        """Kafka keeps what was written: the replay writes it again."""


def lacking(session: SparkSession) -> str:
    """Why the connector in a session cannot be planned from here, empty when it can; a missing one is an error."""
    lacks = str(jvm(session).penstock.KafkaSource.lacks())
    if lacks.startswith("missing"):
        raise EnvironmentProblem(
            "Kafka's connector is not among this session's jars; run `penstock kafka-jars jars`, set "
            'spark.jars = ["jars/*.jar"], and start again.'
        )
    return lacks.removeprefix("other: ")


def written(messages: Sequence[str], *, duplicate: bool = False) -> Committed:
    """What the Spark partitions of a batch say that they wrote."""
    counts: dict[str, int] = {}
    size = 0
    for message in () if duplicate else messages:
        for topic, (records, held) in json.loads(message).items():
            counts[topic] = counts.get(topic, 0) + records
            size += held
    return Committed(duplicate, counts, float(size))


def named_topics(frame: DataFrame, outputs: Mapping[str, int]) -> DataFrame:
    """Records with their topic's name in place of its ordinal; Kafka sets the time itself."""
    names = F.array(*[F.lit(name) for name in outputs])
    return frame.select(F.get(names, F.col("topic")).alias("topic"), "key", "value")


def _slice(part: OffsetRange) -> dict[str, Any]:
    """A range as the Java reader takes it."""
    return {"topic": part.place.topic, "partition": part.place.partition, "from": part.start, "to": part.end}
