"""Readers' progress on Kafka: the offsets of consumer groups.

They are asked for through a consumer of the group that never joins it. The admin client's own question must not be used:
librdkafka ends the process when a broker answers it that it does not coordinate the group any more, as one does that has
just started.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from penstock.adapters.kafka.client import code_is, confluent
from penstock.adapters.kafka.cluster import Cluster
from penstock.model.ids import TopicPartition

_Answer = TypeVar("_Answer")
_NOT_READY = ("COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR")


class Groups:
    """Consumer groups of one cluster. Safe to share between threads."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._connection = cluster, cluster.connection

    def names(self) -> list[str]:
        """All groups, in alphabetical order."""
        admin = self._cluster.admin
        future = admin.list_consumer_groups(request_timeout=self._connection.timeout_seconds)
        with self._connection.errors_in_words():
            return sorted(group.group_id for group in future.result().valid)

    def offsets(self, group: str, places: Sequence[TopicPartition], *, stable: bool = True) -> list[Any]:
        """What a group holds of some partitions: Kafka's topic partitions with offset and metadata. `stable` waits for
        transactions that are under way on it."""
        if not places:
            return []
        kafka = confluent()
        config = self._connection.config(
            group_id=group,
            enable_auto_commit=False,
            isolation_level="read_committed" if stable else "read_uncommitted",
        )
        wanted = [kafka.TopicPartition(place.topic, place.partition) for place in places]
        with self._connection.errors_in_words():
            consumer = kafka.Consumer(config)
            try:
                found = self._of_coordinator(
                    lambda: consumer.committed(wanted, timeout=self._connection.timeout_seconds)
                )
            finally:
                consumer.close()
            for entry in found:
                if entry.error is not None:
                    raise kafka.KafkaException(entry.error)
        return [entry for entry in found if entry.offset >= 0]

    def set_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Record offsets as a group's."""
        admin = self._cluster.admin
        if not offsets:
            return
        kafka = confluent()
        entries = [kafka.TopicPartition(p.topic, p.partition, offset) for p, offset in offsets.items()]
        request = [kafka.ConsumerGroupTopicPartitions(group, entries)]

        def ask() -> None:
            future = admin.alter_consumer_group_offsets(
                request, request_timeout=self._connection.timeout_seconds
            )[group]
            for entry in future.result().topic_partitions:
                if entry.error is not None:
                    raise self._cluster.missing(entry.error, entry.topic) or kafka.KafkaException(entry.error)

        with self._connection.errors_in_words():
            self._of_coordinator(ask)

    def _of_coordinator(self, ask: Callable[[], _Answer]) -> _Answer:
        """An answer about a group; a broker that just started says for a while that it isn't ready for groups."""
        deadline = time.monotonic() + self._connection.timeout_seconds
        while True:
            try:
                return ask()
            except confluent().KafkaException as error:
                if time.monotonic() > deadline or not code_is(error.args[0], *_NOT_READY):
                    raise
            time.sleep(0.05)
