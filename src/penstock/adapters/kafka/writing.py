"""Records on their way into Kafka: each to the partition that we chose, acknowledged by all replicas, in order.

`Sending` counts what a producer delivers, plain or inside a transaction; `Writer` is the plain producer.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from penstock.adapters.kafka.client import Connection, code_is, confluent
from penstock.adapters.kafka.reading import place_of
from penstock.adapters.topics.partitioner import partitions_of
from penstock.model.errors import EnvironmentProblem, MissingError, PenstockError, SpecError
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange, Record

RECORD_BYTES_MAX = 1_000_000_000
"""librdkafka's own bound; brokers and topics set the one that counts (`message.max.bytes`, `max.message.bytes`)."""


class Sending:
    """One set of records given to a producer, and where they went."""

    def __init__(self, connection: Connection, producer: Any) -> None:
        self._connection, self._producer = connection, producer
        self.ranges: dict[TopicPartition, OffsetRange] = {}
        self.records = 0
        self._failed: PenstockError | None = None

    def add(self, place: TopicPartition, record: Record) -> None:
        """Give one record to the producer; waits while its queue is full."""
        if record.timestamp_ms < 0:
            raise SpecError(
                "timestamp_ms",
                record.timestamp_ms,
                "is before 1970",
                "Kafka takes times from 1970 on",
                f"topic {place}",
            )
        while True:
            try:
                self._producer.produce(
                    place.topic,
                    record.value,
                    record.key,
                    place.partition,
                    on_delivery=self._delivered,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers) or None,
                )
                break
            except BufferError:
                self._producer.poll(0.05)
        self.records += 1
        if self.records % 1000 == 0:
            self._producer.poll(0)
        self.check()

    def finish(self) -> None:
        """Wait until all are acknowledged; the first error in a sentence."""
        left = self._producer.flush(self._connection.timeout_seconds)
        self.check()
        if left > 0:
            self._producer.purge()
            self._producer.flush(1)
            raise self._connection.in_words(confluent().KafkaError(confluent().KafkaError._TIMED_OUT))

    def check(self) -> None:
        """Raise what went wrong so far."""
        if self._failed is not None:
            raise self._failed

    def _delivered(self, error: Any, message: Any) -> None:
        place = place_of(message)
        if error is not None:
            self._failed = self._failed or self._in_words(error, place, message)
            return
        offset = message.offset()
        known = self.ranges.get(place)
        start = offset if known is None else min(known.start, offset)
        end = offset + 1 if known is None else max(known.end, offset + 1)
        self.ranges[place] = OffsetRange(place, start, end)

    def _in_words(self, error: Any, place: TopicPartition, message: Any) -> PenstockError:
        if code_is(error, "MSG_SIZE_TOO_LARGE"):
            size = len(message.key() or b"") + len(message.value() or b"")
            return SpecError(
                "record",
                f"{size} bytes",
                f"is larger than topic {place.topic} takes",
                "raise the topic's max.message.bytes, or send less",
            )
        if code_is(error, "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"):
            return MissingError(
                f"There is no partition {place} on Kafka; create its topic first, or mend the name."
            )
        if code_is(error, "_MSG_TIMED_OUT"):
            return EnvironmentProblem(
                f"Kafka at {self._connection.servers} took no record of {place} within "
                f"{self._connection.timeout_seconds:g} s; check that it runs and that this host reaches it."
            )
        return self._connection.in_words(error)


class Writer:
    """A producer outside transactions, opened when it is first needed. Safe to share between threads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._producer: Any = None
        self._outages = 0
        """Of the connection, when the producer was opened."""

    def send(
        self,
        topic: str,
        records: Sequence[Record],
        partition: int | None,
        partitions: int,
        first_keyless: int,
    ) -> dict[TopicPartition, OffsetRange]:
        """Send records to one partition, or by key; where they went."""
        if not records:
            return {}
        numbers: Sequence[int] = (
            partitions_of([r.key for r in records], partitions, first_keyless).tolist()
            if partition is None
            else [partition] * len(records)
        )
        places = [TopicPartition(topic, n) for n in range(partitions)]
        with self._lock, self._connection.errors_in_words():
            sending = Sending(self._connection, self._open())
            try:
                for record, number in zip(records, numbers, strict=True):
                    sending.add(places[number], record)
            finally:
                sending.finish()
        return sending.ranges

    def close(self) -> None:
        """Send what is waiting and let go of the connection."""
        with self._lock:
            if self._producer is not None:
                self._producer.flush(self._connection.timeout_seconds)
            self._producer = None

    def _open(self) -> Any:
        """The producer; a new one after an outage, since an idempotent one was seen to end the process then."""
        if self._outages != self._connection.outages:
            self._producer, self._outages = None, self._connection.outages
        if self._producer is None:
            self._producer = confluent().Producer(
                self._connection.config(
                    enable_idempotence=True,
                    linger_ms=5,
                    message_max_bytes=RECORD_BYTES_MAX,
                    delivery_timeout_ms=int(self._connection.timeout_seconds * 1000),
                )
            )
        return self._producer
