"""Topics in memory, for simulations and tests: the same answers as the log and Kafka, gone with the process.

Nothing expires and no time passes by itself: `clock` says what a reader's progress is stamped with. Safe to share
between threads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from penstock.adapters.topics.config import check_config
from penstock.adapters.topics.partitioner import partitions_of
from penstock.adapters.topics.sentences import (
    check_new_topic,
    check_partition,
    check_progress,
    check_same_partitions,
    missing_topic,
)
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange, PartitionInfo, ReaderProgress, Record, StoredRecord, TopicInfo


@dataclass(slots=True)
class _Topic:
    config: dict[str, str]
    held: list[list[Record]]
    """Per partition its records; a record's offset is its place in the list."""
    next_keyless: int = 0
    places: list[TopicPartition] = field(default_factory=list[TopicPartition])


class MemoryTopics:
    """`ports.topics.Topics` in memory."""

    kind = "memory"

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """`clock` gives seconds since 1970; without one, progress carries no time."""
        self._clock = clock
        self._topics: dict[str, _Topic] = {}
        self._progress: dict[str, dict[TopicPartition, tuple[int, float | None]]] = {}
        self._lock = threading.RLock()

    def create(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> bool:
        check_new_topic(topic, partitions)
        wanted = None if config is None else check_config(config)
        with self._lock:
            there = self._topics.get(topic)
            if there is not None:
                check_same_partitions(topic, len(there.held), partitions)
                if wanted is not None:
                    there.config = wanted
                return False
            places = [TopicPartition(topic, n) for n in range(partitions)]
            self._topics[topic] = _Topic(wanted or {}, [[] for _ in places], 0, places)
            return True

    def delete(self, topic: str) -> None:
        with self._lock:
            self._find(topic)
            del self._topics[topic]
            for reader, offsets in list(self._progress.items()):
                kept = {place: said for place, said in offsets.items() if place.topic != topic}
                self._progress[reader] = kept

    def topics(self) -> list[str]:
        with self._lock:
            return sorted(self._topics)

    def describe(self, topic: str) -> TopicInfo:
        with self._lock:
            found = self._find(topic)
            partitions = tuple(
                PartitionInfo(place, 0, len(held), sum(_size_bytes(r) for r in held))
                for place, held in zip(found.places, found.held, strict=True)
            )
            return TopicInfo(topic, partitions, dict(found.config))

    def end_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        with self._lock:
            return {
                place: len(held)
                for found in map(self._find, topics)
                for place, held in zip(found.places, found.held, strict=True)
            }

    def begin_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        return dict.fromkeys(self.end_offsets(topics), 0)

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[TopicPartition, int]:
        with self._lock:
            found = self._find(topic)
            return {
                place: next((n for n, r in enumerate(held) if r.timestamp_ms >= timestamp_ms), len(held))
                for place, held in zip(found.places, found.held, strict=True)
            }

    def append(
        self, topic: str, records: Iterable[Record], partition: int | None = None
    ) -> dict[TopicPartition, OffsetRange]:
        """All records, or none when taking them from the caller fails."""
        came = list(records)
        with self._lock:
            found = self._find(topic)
            if partition is None:
                keys = [r.key for r in came]
                numbers = partitions_of(keys, len(found.held), found.next_keyless).tolist()
                found.next_keyless = (found.next_keyless + keys.count(None)) % len(found.held)
            else:
                check_partition(TopicPartition(topic, partition), len(found.held))
                numbers = [partition] * len(came)
            before = [len(held) for held in found.held]
            for record, number in zip(came, numbers, strict=True):
                found.held[number].append(record)
            return {
                place: OffsetRange(place, start, len(held))
                for place, start, held in zip(found.places, before, found.held, strict=True)
                if len(held) > start
            }

    def read(self, place: TopicPartition, start: int, limit: int) -> list[StoredRecord]:
        with self._lock:
            found = self._find(place.topic)
            check_partition(place, len(found.held))
            first = max(0, start)
            held = found.held[place.partition][first : first + max(0, limit)]
        return [StoredRecord(place, first + i, record) for i, record in enumerate(held)]

    def commit_progress(self, reader: str, offsets: Mapping[TopicPartition, int]) -> None:
        check_progress(reader, offsets)
        with self._lock:
            now = self._clock() if self._clock else None
            mine = self._progress.setdefault(reader, {})
            mine.update({place: (offset, now) for place, offset in offsets.items()})

    def progress(
        self, reader: str, topics: Sequence[str], *, stable: bool = True
    ) -> dict[TopicPartition, int]:
        with self._lock:
            found = self._progress.get(reader, {}).items()
            return {place: offset for place, (offset, _) in found if place.topic in topics}

    def forget_reader(self, reader: str) -> bool:
        with self._lock:
            return bool(self._progress.pop(reader, None))

    def readers(self, topic: str) -> list[ReaderProgress]:
        with self._lock:
            self._find(topic)
            return [
                ReaderProgress(reader, place, offset, at)
                for reader, offsets in sorted(self._progress.items())
                for place, (offset, at) in sorted(offsets.items())
                if place.topic == topic
            ]

    def close(self) -> None:
        """Nothing to let go of."""

    def _find(self, topic: str) -> _Topic:
        found = self._topics.get(topic)
        if found is None:
            raise missing_topic(topic, sorted(self._topics))
        return found


def _size_bytes(record: Record) -> int:
    headers = sum(len(name.encode()) + len(value or b"") for name, value in record.headers)
    return len(record.key or b"") + len(record.value or b"") + headers
