"""Readers' progress on Kafka: the offsets of consumer groups.

They are asked for and recorded through consumers that never join their group. The admin client's own calls for that must
not be used: librdkafka ends the process in them when a broker goes away, or has just started and answers that it does
not coordinate the group yet.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from penstock.adapters.kafka.client import Connection, code_is, confluent
from penstock.adapters.kafka.cluster import Cluster
from penstock.model.ids import TopicPartition

_Answer = TypeVar("_Answer")
_POLL_SECONDS = 0.002
"""How long a poll waits; an answer that came is told by the next one."""
_NOT_READY = (
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "UNSTABLE_OFFSET_COMMIT",
)


class Groups:
    """Consumer groups of one cluster. Safe to share between threads."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._connection = cluster, cluster.connection
        self._committers: dict[str, _Committer] = {}
        self._lock = threading.Lock()

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
        isolation = "read_committed" if stable else "read_uncommitted"
        wanted = [kafka.TopicPartition(place.topic, place.partition) for place in places]
        with self._connection.errors_in_words():
            consumer = kafka.Consumer(_config(self._connection, group) | {"isolation.level": isolation})

            def ask() -> list[Any]:
                found = consumer.committed(wanted, timeout=self._connection.timeout_seconds)
                for entry in found:  # a pending offset carries none, and must not pass for one without
                    if entry.error is not None and not code_is(entry.error, "UNKNOWN_TOPIC_OR_PART"):
                        raise kafka.KafkaException(entry.error)
                return [entry for entry in found if entry.offset >= 0]

            try:
                return self._of_coordinator(ask)
            finally:
                consumer.close()

    def set_offsets(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Record offsets as a group's."""
        if not offsets:
            return
        kafka = confluent()
        entries = [kafka.TopicPartition(p.topic, p.partition, offset) for p, offset in offsets.items()]
        with self._connection.errors_in_words():
            found = self._of_coordinator(lambda: self._commit(group, entries))
        for entry in found:
            if entry.error is not None:
                raise self._cluster.missing(entry.error, entry.topic) or self._connection.in_words(
                    entry.error
                )

    def close(self) -> None:
        """Let go of all connections; a later call opens them again."""
        with self._lock:
            committers, self._committers = list(self._committers.values()), {}
        for committer in committers:
            committer.close()

    def _committer(self, group: str) -> _Committer:
        with self._lock:
            if group not in self._committers:
                self._committers[group] = _Committer(self._connection, group)
            return self._committers[group]

    def _commit(self, group: str, entries: list[Any]) -> list[Any]:
        while True:
            committer = self._committer(group)
            try:
                found = committer.commit(entries, self._connection.timeout_seconds)
            except BaseException:
                if committer.dead:
                    self._let_go(group, committer)
                raise
            if found is not None:
                return found
            self._let_go(group, committer)  # it died while this call waited for it

    def _let_go(self, group: str, committer: _Committer) -> None:
        """What a consumer that failed still has under way must not answer for a later call."""
        with self._lock:
            if self._committers.get(group) is not committer:
                return  # another call has let it go
            del self._committers[group]
        threading.Thread(target=committer.close, daemon=True).start()  # it waits for what is under way

    def delete(self, group: str) -> bool:
        """Delete a group with its offsets; False when there is none."""
        admin = self._cluster.admin

        def ask() -> bool:
            future = admin.delete_consumer_groups([group], request_timeout=self._connection.timeout_seconds)[
                group
            ]
            try:
                future.result()
            except confluent().KafkaException as error:
                if code_is(error.args[0], "GROUP_ID_NOT_FOUND"):
                    return False
                raise
            return True

        with self._connection.errors_in_words():
            return self._of_coordinator(ask)

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


class _Committer:
    """A consumer that records offsets of its group, one call at a time. It is dead once a call had no answer."""

    def __init__(self, connection: Connection, group: str) -> None:
        self._lock = threading.Lock()
        self._answers: list[tuple[Any, list[Any]]] = []
        self.dead, self._new = False, True
        self._consumer = confluent().Consumer(_config(connection, group) | {"on_commit": self._answered})

    def commit(self, entries: list[Any], timeout_seconds: float) -> list[Any] | None:
        """The partitions with their errors, an error when no answer came in time, None when it was dead already."""
        kafka = confluent()
        with self._lock:
            if self.dead:
                return None
            try:
                error, found = self._ask(entries, timeout_seconds)
            except BaseException:
                self.dead = True  # under the lock: who waits for it must not hear this call's late answer
                raise
        errors = [entry.error for entry in found if entry.error is not None]
        passing = next((told for told in errors if code_is(told, *_NOT_READY)), None)
        if passing is not None or (error is not None and not errors):
            raise kafka.KafkaException(error if passing is None else passing)
        return found

    def _ask(self, entries: list[Any], timeout_seconds: float) -> tuple[Any, list[Any]]:
        kafka = confluent()
        self._answers.clear()
        deadline = time.monotonic() + timeout_seconds
        if self._new:  # a commit alone would wait a second for the group's broker to be looked for
            self._consumer.committed(entries[:1], timeout=timeout_seconds)
            self._new = False
        self._consumer.commit(offsets=entries, asynchronous=True)
        while not self._answers:
            self._consumer.poll(_POLL_SECONDS)
            if not self._answers and time.monotonic() > deadline:
                raise kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._TIMED_OUT))
        return self._answers.pop()

    def close(self) -> None:
        with self._lock:
            self.dead = True
            self._consumer.close()

    def _answered(self, error: Any, entries: list[Any]) -> None:
        self._answers.append((error, entries))


def _config(connection: Connection, group: str) -> dict[str, Any]:
    return connection.config(group_id=group, enable_auto_commit=False)
