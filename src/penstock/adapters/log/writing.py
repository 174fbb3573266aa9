"""Records given by value become segment files: grouped by partition, in pieces that fit in memory.

The files it makes are orphans until the log commits them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from penstock.adapters.log.faults import Faults
from penstock.adapters.log.segments import Rows, check_record, write_chunks
from penstock.adapters.topics.partitioner import partitions_of
from penstock.model.ids import TopicPartition
from penstock.model.records import Record, Written

_GROUP_RECORDS = 1 << 17
_GROUP_BYTES = 64 << 20
"""One file holds at most this much (records, bytes), save for one larger record: what a writer has in memory."""


@dataclass(frozen=True, slots=True)
class ValueWriter:
    """Writes segment files into one log's folder."""

    folder: Path
    durable: bool
    faults: Faults

    def write_by_key(
        self, places: Sequence[TopicPartition], records: Iterable[Record], next_keyless: int
    ) -> tuple[list[Written], int]:
        """Spread records over partitions by key; also how many had none."""
        written: list[Written] = []
        keyless = 0
        for group in _groups(records):
            keys = [record.key for record in group]
            numbers = partitions_of(keys, len(places), next_keyless + keyless)
            keyless += keys.count(None)
            order = np.argsort(numbers, kind="stable")
            rows = Rows.of(group).take(order)
            present, starts, counts = np.unique(numbers[order], return_index=True, return_counts=True)
            parts: list[tuple[TopicPartition, Rows]] = [
                (places[number], rows.slice(start, count))
                for number, start, count in zip(
                    present.tolist(), starts.tolist(), counts.tolist(), strict=True
                )
            ]
            written.extend(self._write("append", parts))
        return written, keyless

    def write_to(self, place: TopicPartition, records: Iterable[Record]) -> list[Written]:
        """Write records of one partition."""
        return [w for group in _groups(records) for w in self._write("append", [(place, Rows.of(group))])]

    def write_placed(self, producer: str, records: Sequence[tuple[TopicPartition, Record]]) -> list[Written]:
        """Write few records whose partitions are given."""
        by_place: dict[TopicPartition, list[Record]] = {}
        for place, record in records:
            check_record(record)
            by_place.setdefault(place, []).append(record)
        return self._write(producer, [(place, Rows.of(group)) for place, group in by_place.items()])

    def _write(self, producer: str, parts: Sequence[tuple[TopicPartition, Rows]]) -> list[Written]:
        return list(write_chunks(self.folder, producer, parts, durable=self.durable, faults=self.faults))


def _groups(records: Iterable[Record]) -> Iterator[list[Record]]:
    group: list[Record] = []
    size = 0
    for record in records:
        bytes_ = len(record.key or b"") + len(record.value or b"")
        if group and (size + bytes_ > _GROUP_BYTES or len(group) >= _GROUP_RECORDS):
            yield group
            group, size = [], 0
        if bytes_ > _GROUP_BYTES:
            check_record(record)
        group.append(record)
        size += bytes_
    if group:
        yield group
