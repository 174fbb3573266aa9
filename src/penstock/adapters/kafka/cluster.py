"""Questions to a Kafka cluster: which topics with how many partitions, which offsets.

Every method is one round trip, or a few in parallel. Numbers of partitions are remembered for a short time, because
offsets are asked for in every micro-batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any

from penstock.adapters.kafka.client import Connection, code_is, confluent
from penstock.adapters.topics.sentences import missing_topic
from penstock.model.errors import PenstockError
from penstock.model.ids import TopicPartition

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
        with self.connection.errors_in_words(lambda error: self.missing(error, topic)):
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
            with self.connection.errors_in_words(lambda error, topic=place.topic: self.missing(error, topic)):
                found[TopicPartition(place.topic, place.partition)] = future.result().offset
        if any(offset == kafka.OFFSET_INVALID for offset in found.values()):  # while a broker goes away
            raise self.connection.in_words(kafka.KafkaError(kafka.KafkaError._TRANSPORT))
        return found

    def earliest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        return self.offsets(places, confluent(".admin").OffsetSpec.earliest())

    def latest(self, places: Sequence[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset after each partition's newest committed record."""
        return self.offsets(places, confluent(".admin").OffsetSpec.latest())

    def missing(self, error: Any, topic: str) -> PenstockError | None:
        """The sentence for an error that says that a topic is not there."""
        if not code_is(error, "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
            return None
        self.forget(topic)
        return missing_topic(topic, self.names())
