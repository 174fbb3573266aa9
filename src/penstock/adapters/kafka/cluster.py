"""Questions to a Kafka cluster: which topics with how many partitions, offsets, readers' progress.

Every method is one round trip, or a few in parallel. Numbers of partitions are remembered for a short time, because
offsets are asked for in every micro-batch.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from penstock.adapters.kafka.client import Connection, code_is, confluent
from penstock.adapters.topics.sentences import missing_topic
from penstock.model.errors import PenstockError
from penstock.model.ids import TopicPartition

_Answer = TypeVar("_Answer")
_NOT_READY = (
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "UNSTABLE_OFFSET_COMMIT",
)
_REMEMBER_SECONDS = 10.0
_INTERNAL = "__"
"""Topics named so belong to Kafka, or to its clients' own bookkeeping."""


class Cluster:
    """One Kafka cluster, through its admin client."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._admin: tuple[int, Any] = connection.outages, connection.admin()
        self._partitions: dict[str, tuple[float, int]] = {}

    @property
    def admin(self) -> Any:
        """The admin client; another one after an outage, since an old one may never find a group's broker again. Who
        asks holds it until the answer is there: a client that nobody holds ends without answering.
        """
        outages, admin = self._admin
        if outages != self.connection.outages:
            outages, admin = self.connection.outages, self.connection.admin()
            self._admin = outages, admin
        return admin

    def names(self) -> list[str]:
        """Topics for people, in alphabetical order."""
        admin = self.admin
        with self.connection.errors_in_words():
            found = admin.list_topics(timeout=self.connection.timeout_seconds).topics
        return sorted(name for name in found if not name.startswith(_INTERNAL))

    def partitions(self, topic: str) -> int:
        """How many partitions a topic has; a `MissingError` names the topics there are."""
        at, count = self._partitions.get(topic, (0.0, 0))
        if count == 0 or time.monotonic() - at > _REMEMBER_SECONDS:
            count = self.look_up(topic)
            self._partitions[topic] = time.monotonic(), count
        return count

    def look_up(self, topic: str) -> int:
        """How many partitions a topic has now."""
        admin = self.admin
        collection = confluent().TopicCollection([topic])
        future = admin.describe_topics(collection, request_timeout=self.connection.timeout_seconds)[topic]
        with self.connection.errors_in_words(lambda error: self._missing(error, topic)):
            return len(future.result().partitions)

    def forget(self, topic: str) -> None:
        """Ask again next time."""
        self._partitions.pop(topic, None)

    def places(self, topics: Iterable[str]) -> list[TopicPartition]:
        """All partitions of some topics."""
        return [
            TopicPartition(topic, n) for topic in dict.fromkeys(topics) for n in range(self.partitions(topic))
        ]

    def offsets(self, places: Sequence[TopicPartition], spec: Any) -> dict[TopicPartition, int]:
        """Offsets as one of Kafka's specs says (earliest, latest committed, by time); -1 where there is none."""
        admin = self.admin
        if not places:
            return {}
        kafka = confluent()
        request = {kafka.TopicPartition(p.topic, p.partition): spec for p in places}
        futures = admin.list_offsets(
            request,
            isolation_level=kafka.IsolationLevel.READ_COMMITTED,
            request_timeout=self.connection.timeout_seconds,
        )
        found: dict[TopicPartition, int] = {}
        for place, future in futures.items():
            with self.connection.errors_in_words(
                lambda error, topic=place.topic: self._missing(error, topic)
            ):
                found[TopicPartition(place.topic, place.partition)] = future.result().offset
        if any(offset == kafka.OFFSET_INVALID for offset in found.values()):  # while a broker goes away
            raise self.connection.in_words(kafka.KafkaError(kafka.KafkaError._TRANSPORT))
        return found

    def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self.offsets(places, confluent(".admin").OffsetSpec.earliest())

    def latest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after each partition's newest committed record."""
        return self.offsets(places, confluent(".admin").OffsetSpec.latest())

    def group_offsets(
        self, group: str, places: Sequence[TopicPartition] | None = None, *, stable: bool = True
    ) -> list[Any]:
        """What a consumer group holds: Kafka's topic partitions with offset and metadata; pending ones waited for."""
        admin = self.admin
        kafka = confluent()
        entries = None if places is None else [kafka.TopicPartition(p.topic, p.partition) for p in places]
        request = [kafka.ConsumerGroupTopicPartitions(group, entries)]

        def ask() -> list[Any]:
            future = admin.list_consumer_group_offsets(
                request, require_stable=stable, request_timeout=self.connection.timeout_seconds
            )[group]
            found = future.result().topic_partitions
            for (
                entry
            ) in found:  # one with an offset that is pending carries none, and must not pass for one without
                if entry.error is not None and not code_is(entry.error, "UNKNOWN_TOPIC_OR_PART"):
                    raise kafka.KafkaException(entry.error)
            return [entry for entry in found if entry.offset >= 0]

        return self._of_coordinator(ask)

    def set_group_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Record offsets as a consumer group's."""
        admin = self.admin
        if not offsets:
            return
        kafka = confluent()
        entries = [kafka.TopicPartition(p.topic, p.partition, offset) for p, offset in offsets.items()]
        request = [kafka.ConsumerGroupTopicPartitions(group, entries)]

        def ask() -> None:
            future = admin.alter_consumer_group_offsets(
                request, request_timeout=self.connection.timeout_seconds
            )[group]
            for entry in future.result().topic_partitions:
                if entry.error is not None:
                    raise self._missing(entry.error, entry.topic) or kafka.KafkaException(entry.error)

        self._of_coordinator(ask)

    def _of_coordinator(self, ask: Callable[[], _Answer]) -> _Answer:
        """An answer about a group, which waits for a broker that just started and for transactions that are going on."""
        deadline = time.monotonic() + self.connection.timeout_seconds
        with self.connection.errors_in_words():
            while True:
                try:
                    return ask()
                except confluent().KafkaException as error:
                    if time.monotonic() > deadline or not code_is(error.args[0], *_NOT_READY):
                        raise
                time.sleep(0.05)

    def groups(self) -> list[str]:
        """All consumer groups, by name."""
        admin = self.admin
        future = admin.list_consumer_groups(request_timeout=self.connection.timeout_seconds)
        with self.connection.errors_in_words():
            return sorted(group.group_id for group in future.result().valid)

    def _missing(self, error: Any, topic: str) -> PenstockError | None:
        if not code_is(error, "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
            return None
        self.forget(topic)
        return missing_topic(topic, self.names())
