"""Topics of a Kafka cluster (`ports.topics.Topics`), through confluent-kafka.

Rules
- Keys are placed by our own form of Kafka's default partitioner, so that all writers here agree.
- Only committed records are seen: offsets end at the last stable one, reads skip what was aborted.
- Progress is a consumer group's offsets, so that usual lag tools see it.
- Transactions and compaction leave gaps between offsets: `end - begin` is a bound on the number of records.

Safe to share between threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from penstock.adapters.kafka.client import Connection, code_is, confluent
from penstock.adapters.kafka.cluster import Cluster
from penstock.adapters.kafka.groups import Groups
from penstock.adapters.kafka.reading import Reader
from penstock.adapters.kafka.writing import Writer
from penstock.adapters.topics.config import check_config
from penstock.adapters.topics.sentences import (
    check_new_topic,
    check_partition,
    check_progress,
    check_same_partitions,
)
from penstock.model.errors import EnvironmentProblem, MissingError
from penstock.model.ids import TopicPartition
from penstock.model.records import (
    OffsetRange,
    PartitionInfo,
    ReaderProgress,
    Record,
    StoredRecord,
    TopicInfo,
)


class KafkaTopics:
    """`ports.topics.Topics` on a Kafka cluster."""

    kind = "kafka"

    def __init__(
        self,
        servers: str,
        settings: Mapping[str, str] | None = None,
        *,
        timeout_seconds: float = 15.0,
        replication: int = -1,
    ) -> None:
        """`settings` are librdkafka's; `replication` is for topics that are made here (-1: as the brokers say)."""
        self._connection = Connection(servers, settings, timeout_seconds)
        self._cluster = Cluster(self._connection)
        self._groups = Groups(self._cluster)
        self._reader = Reader(self._connection)
        self._writer = Writer(self._connection)
        self._replication = replication
        self._next_keyless: dict[str, int] = {}
        self._lock = threading.Lock()

    @property
    def servers(self) -> str:
        """Kafka's `bootstrap.servers`."""
        return self._connection.servers

    def create(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> bool:
        check_new_topic(topic, partitions)
        wanted = None if config is None else check_config(config)
        new = confluent(".admin").NewTopic(
            topic, num_partitions=partitions, replication_factor=self._replication, config=wanted or {}
        )
        client = self._cluster.admin
        future = client.create_topics([new], request_timeout=self._connection.timeout_seconds)[topic]
        self._cluster.forget(topic)
        try:
            with self._connection.errors_in_words(_already_there):
                future.result()
        except _AlreadyThere:
            check_same_partitions(topic, self._cluster.look_up(topic), partitions)
            if wanted is not None and not wanted.items() <= self._config(topic).items():
                self._set_config(topic, wanted)
            return False
        self._wait_for(topic, partitions)
        return True

    def delete(self, topic: str) -> None:
        self._cluster.look_up(topic)
        client = self._cluster.admin
        future = client.delete_topics([topic], operation_timeout=self._connection.timeout_seconds)[topic]
        with self._connection.errors_in_words():
            future.result()
        self._cluster.forget(topic)
        self._wait_for(topic, 0)

    def topics(self) -> list[str]:
        return self._cluster.names()

    def describe(self, topic: str) -> TopicInfo:
        self._cluster.forget(topic)
        places = self._cluster.places([topic])
        begins, ends = self._cluster.earliest(places), self._cluster.latest(places)
        partitions = tuple(PartitionInfo(place, begins[place], ends[place]) for place in places)
        return TopicInfo(topic, partitions, self._config(topic))

    def end_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        return self._cluster.latest(self._cluster.places(topics))

    def begin_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        return self._cluster.earliest(self._cluster.places(topics))

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[TopicPartition, int]:
        places = self._cluster.places([topic])
        ends = self._cluster.latest(places)  # first: a record that comes in between must not be left out
        spec = confluent(".admin").OffsetSpec.for_timestamp(max(0, timestamp_ms))
        found = self._cluster.offsets(places, spec)
        return {place: found[place] if found[place] >= 0 else ends[place] for place in places}

    def append(
        self, topic: str, records: Iterable[Record], partition: int | None = None
    ) -> dict[TopicPartition, OffsetRange]:
        """Records reach Kafka one by one: an error may leave some of them there. The ranges may hold others' records
        that came in between."""
        count = self._cluster.partitions(topic)
        if partition is not None:
            check_partition(TopicPartition(topic, partition), count)
        came = list(records)  # what the caller cannot give is found out before anything is sent
        with self._lock:
            first = self._next_keyless.get(topic, 0)
            if partition is None:
                self._next_keyless[topic] = (first + sum(r.key is None for r in came)) % count
        try:
            return self._writer.send(topic, came, partition, count, first)
        except MissingError:
            self._cluster.look_up(topic)  # says it with the topics there are
            raise

    def read(self, place: TopicPartition, start: int, limit: int) -> list[StoredRecord]:
        check_partition(place, self._cluster.partitions(place.topic))
        if limit <= 0:
            return []
        begin, end = self._cluster.earliest([place])[place], self._cluster.latest([place])[place]
        first = max(start, begin)
        return self._reader.read(OffsetRange(place, first, end), limit) if first < end else []

    def commit_progress(self, reader: str, offsets: Mapping[TopicPartition, int]) -> None:
        check_progress(reader, offsets)
        self._groups.set_offsets(reader, offsets)

    def progress(
        self, reader: str, topics: Sequence[str], *, stable: bool = True
    ) -> dict[TopicPartition, int]:
        entries = self._groups.offsets(reader, self._places_there(topics), stable=stable)
        return {TopicPartition(e.topic, e.partition): e.offset for e in entries}

    def forget_reader(self, reader: str) -> bool:
        """The consumer group goes, with the notes that exactly-once jobs keep in it."""
        return self._groups.delete(reader)

    def marked_progress(
        self, reader: str, places: Sequence[TopicPartition], *, stable: bool = True
    ) -> dict[TopicPartition, tuple[int, str]]:
        entries = self._groups.offsets(reader, places, stable=stable)
        return {TopicPartition(e.topic, e.partition): (e.offset, e.metadata or "") for e in entries}

    def readers(self, topic: str) -> list[ReaderProgress]:
        places = self._cluster.places([topic])
        return [
            ReaderProgress(group, TopicPartition(topic, entry.partition), entry.offset)
            for group in self._groups.names()
            for entry in sorted(self._groups.offsets(group, places, stable=False), key=lambda e: e.partition)
        ]

    def close(self) -> None:
        self._writer.close()
        self._reader.close()
        self._groups.close()

    def _places_there(self, topics: Sequence[str]) -> list[TopicPartition]:
        """All partitions of those of these topics that there are."""
        found: list[TopicPartition] = []
        for topic in topics:
            with suppress(MissingError):
                found += self._cluster.places([topic])
        return found

    def _wait_for(self, topic: str, partitions: int) -> None:
        """Until every broker that answers agrees that a topic has so many partitions (0: is gone)."""
        deadline = time.monotonic() + self._connection.timeout_seconds
        while time.monotonic() < deadline:
            try:
                there = self._cluster.look_up(topic)
                if there == partitions:
                    self._cluster.latest(self._cluster.places([topic]))  # needs every partition's leader
                    return
            except MissingError:
                if partitions == 0:
                    return
            except EnvironmentProblem:  # a leader is being chosen
                pass
            time.sleep(0.02)
        state = "was made" if partitions else "was deleted"
        raise EnvironmentProblem(
            f"Topic {topic!r} {state} on Kafka at {self.servers}, but its brokers do not agree on that after "
            f"{self._connection.timeout_seconds:g} s; look at the brokers' logs."
        )

    def _config(self, topic: str) -> dict[str, str]:
        """The settings that the topic has of its own."""
        admin = confluent(".admin")
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic)
        client = self._cluster.admin
        [future] = client.describe_configs(
            [resource], request_timeout=self._connection.timeout_seconds
        ).values()
        with self._connection.errors_in_words():
            entries: Mapping[str, Any] = future.result()
        own = admin.ConfigSource.DYNAMIC_TOPIC_CONFIG.value
        return {name: str(entry.value) for name, entry in sorted(entries.items()) if entry.source == own}

    def _set_config(self, topic: str, wanted: Mapping[str, str]) -> None:
        """These settings; others that the topic has are those of who runs Kafka, and stay."""
        admin = confluent(".admin")
        to_set = admin.AlterConfigOpType.SET
        entries = [
            admin.ConfigEntry(name, value, incremental_operation=to_set) for name, value in wanted.items()
        ]
        resource = admin.ConfigResource(admin.ConfigResource.Type.TOPIC, topic, incremental_configs=entries)
        client = self._cluster.admin
        [future] = client.incremental_alter_configs(
            [resource], request_timeout=self._connection.timeout_seconds
        ).values()
        with self._connection.errors_in_words():
            future.result()
        deadline = time.monotonic() + self._connection.timeout_seconds
        while not wanted.items() <= self._config(topic).items() and time.monotonic() < deadline:
            time.sleep(0.02)


class _AlreadyThere(Exception):
    """The topic to make is there."""


def _already_there(error: Any) -> Exception | None:
    return _AlreadyThere() if code_is(error, "TOPIC_ALREADY_EXISTS") else None
