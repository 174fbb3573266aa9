"""A few records by place and offset, for tools and samples; jobs read Kafka inside Spark."""

from __future__ import annotations

import threading
import time
from typing import Any

from penstock.adapters.kafka.client import Connection, code_is, confluent
from penstock.model.errors import EnvironmentProblem
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange, Record, StoredRecord

_POLL_SECONDS = 0.05
_AT_ONCE = 500


class Reader:
    """One consumer without a group's duties, given a place at each read. Safe to share between threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._consumer: Any = None

    def read(self, wanted: OffsetRange, limit: int) -> list[StoredRecord]:
        """Up to `limit` committed records of a range that is there; aborted ones leave gaps."""
        kafka, place = confluent(), wanted.place
        found: list[StoredRecord] = []
        with self._lock, self._connection.errors_in_words():
            consumer = self._open()
            consumer.assign([kafka.TopicPartition(place.topic, place.partition, wanted.start)])
            try:
                deadline = time.monotonic() + self._connection.timeout_seconds
                while len(found) < limit and time.monotonic() < deadline:
                    # Asking for more than there is would wait for the whole time at each partition's end.
                    left = wanted.end - (found[-1].offset + 1 if found else wanted.start)
                    came = consumer.consume(min(_AT_ONCE, limit - len(found), left), _POLL_SECONDS)
                    if _take(came, wanted, found):
                        return found
                    if came:
                        deadline = time.monotonic() + self._connection.timeout_seconds
            finally:
                consumer.unassign()
        if len(found) < limit:
            raise EnvironmentProblem(
                f"Kafka at {self._connection.servers} gave {len(found)} records of {place} from offset {wanted.start} "
                f"on and then none for {self._connection.timeout_seconds:g} s; look at its brokers' logs."
            )
        return found

    def close(self) -> None:
        """Let go of the connection; a later read opens it again."""
        with self._lock:
            if self._consumer is not None:
                self._consumer.close()
            self._consumer = None

    def _open(self) -> Any:
        if self._consumer is None:
            config = self._connection.config(
                group_id="penstock-tools",
                enable_auto_commit=False,
                auto_offset_reset="error",
                isolation_level="read_committed",
                fetch_wait_max_ms=10,
                enable_partition_eof=True,
            )
            self._consumer = confluent().Consumer(config)
        return self._consumer


def _take(messages: list[Any], wanted: OffsetRange, found: list[StoredRecord]) -> bool:
    """Add what is of the range; whether its end was reached."""
    for message in messages:
        error = message.error()
        if error is not None:
            if code_is(error, "_PARTITION_EOF"):
                return True
            raise confluent().KafkaException(error)
        if message.offset() >= wanted.end:
            return True
        found.append(StoredRecord(wanted.place, message.offset(), _record(message)))
        if message.offset() == wanted.end - 1:
            return True
    return False


def _record(message: Any) -> Record:
    headers = tuple((name, value) for name, value in message.headers() or ())
    return Record(message.key(), message.value(), int(message.timestamp()[1]), headers)


def place_of(message: Any) -> TopicPartition:
    """Where a delivered message went."""
    return TopicPartition(message.topic(), message.partition())
