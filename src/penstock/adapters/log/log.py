"""The embedded log: topics in a folder of one host, opened by many processes at once.

Index = SQLite in WAL mode (which records exist), segments = immutable Arrow IPC files (what they hold). Files are
written and synced first, then one transaction names them: readers see committed records only, and a crash at any
moment leaves at most files that nobody names. The commit of a micro-batch holds all partitions of all its topics, the
source offsets they came from and the reader's progress. Safe to share between threads.

It must not know Spark, nor what a record means.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from penstock.adapters.log import catalog, producers, readers
from penstock.adapters.log.chunks import find_chunks, place_chunks
from penstock.adapters.log.faults import Faults, no_faults
from penstock.adapters.log.files import SEGMENTS, disk_errors_in_words
from penstock.adapters.log.index import Index
from penstock.adapters.log.retaining import Retainer
from penstock.adapters.log.segments import read_chunk
from penstock.adapters.log.store import Store
from penstock.adapters.log.upkeep import Upkeep, UpkeepSettings, Upkept
from penstock.adapters.log.verifying import Finding, find_problems
from penstock.adapters.log.view import View
from penstock.adapters.log.writing import ValueWriter
from penstock.adapters.topics.config import check_config
from penstock.adapters.topics.sentences import check_new_topic, check_partition
from penstock.model.errors import CorruptionError, MissingError
from penstock.model.ids import Fence, TopicPartition, check_name
from penstock.model.records import (
    BatchCommit,
    Chunk,
    CommitResult,
    CommittedBatch,
    OffsetRange,
    PartitionInfo,
    ReaderProgress,
    Record,
    StoredRecord,
    TopicInfo,
    Written,
)


class EmbeddedLog:
    """`ports.topics.SegmentLog` on a folder."""

    kind = "log"

    def __init__(
        self,
        folder: Path,
        *,
        faults: Faults | None = None,
        durable: bool = True,
        lock_wait_seconds: float = 30.0,
        clock: Callable[[], float] = time.time,
        upkeep: UpkeepSettings | None = None,
    ) -> None:
        """Open or make a log. `durable=False` gives up the newest commits at a power cut, for throw-away runs."""
        self.folder = Path(folder).absolute()
        self.faults = faults or no_faults
        self.batches_kept = 100
        """Committed batches remembered per producer: as many as Spark keeps in a checkpoint."""
        with disk_errors_in_words(self.folder):
            (self.folder / SEGMENTS).mkdir(parents=True, exist_ok=True)
        self.index = Index(self.folder, durable=durable, lock_wait_seconds=lock_wait_seconds)
        self._view = View(self.index)
        self._store = Store(self.folder, self.index, durable, self.faults, clock)
        self._upkeep = Upkeep(self._store, upkeep or UpkeepSettings())
        self._values = ValueWriter(self.folder, durable, self.faults)
        self._next_keyless: dict[int, int] = {}

    @property
    def segment_folder(self) -> str:
        return str(self.folder / SEGMENTS)

    def create(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> bool:
        check_new_topic(topic, partitions)
        wanted = None if config is None else check_config(config)
        with self.index.writing() as db:
            return catalog.create_topic(db, topic, partitions, wanted)

    def delete(self, topic: str) -> None:
        """Forget a topic, its records and how far readers were; files go with a later sweep."""
        found = self._view.topic(topic)
        with self.index.writing() as db:
            catalog.delete_topic(db, found.id, topic, self._store.now_ms())

    def topics(self) -> list[str]:
        return self._view.names()

    def describe(self, topic: str) -> TopicInfo:
        found = self._view.topic(topic)
        partitions = tuple(
            PartitionInfo(place, found.begins[place], found.ends[place], found.sizes[place])
            for place in found.places
        )
        return TopicInfo(topic, partitions, dict(found.config))

    def end_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        return self._view.ends(topics)

    def begin_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        return self._view.begins(topics)

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[TopicPartition, int]:
        found = self._view.topic(topic)
        offsets = dict(found.ends)
        for place in found.places:
            with self.index.reading() as db:
                chunk = readers.first_chunk_at(db, found.id, place.partition, timestamp_ms)
            if chunk is not None:
                row = read_chunk(self.folder, chunk, place).first_at(timestamp_ms)
                offsets[place] = max(found.begins[place], chunk.base_offset + (row or 0))
        return offsets

    def append(
        self, topic: str, records: Iterable[Record], partition: int | None = None
    ) -> dict[TopicPartition, OffsetRange]:
        """All records in one transaction, or none. Records without a key go round the partitions."""
        found = self._view.topic(topic)
        if partition is not None:
            check_partition(TopicPartition(topic, partition), len(found.places))
        with self._store.written_files() as written:
            if partition is not None:
                written += self._values.write_to(TopicPartition(topic, partition), records)
                first = keyless = 0
            else:
                first = self._next_keyless.get(found.id, sum(found.ends.values()))
                spread, keyless = self._values.write_by_key(found.places, records, first)
                written += spread
            if not written:
                return {}
            self._store.settle(written)
            with self.index.writing() as db:
                self.faults("append.locked")
                self._store.check_files(written)
                ranges = place_chunks(db, written)
                self.faults("append.placed")
        self.faults("append.committed")
        if keyless:
            self._next_keyless[found.id] = (first + keyless) % len(found.places)
        return _joined(ranges)

    def read(self, place: TopicPartition, start: int, limit: int) -> list[StoredRecord]:
        found: list[StoredRecord] = []
        for chunk, wanted in self._find_kept(place, start, limit):
            skip = max(0, wanted.start - chunk.base_offset)
            take = min(chunk.records, wanted.end - chunk.base_offset) - skip
            rows = read_chunk(self.folder, chunk, place).slice(skip, take)
            first = chunk.base_offset + skip
            found.extend(StoredRecord(place, first + i, record) for i, record in enumerate(rows.records()))
        return found

    def _find_kept(self, place: TopicPartition, start: int, limit: int) -> list[tuple[Chunk, OffsetRange]]:
        while True:
            topic, begin, end = self._view.bounds(place)
            first = max(start, begin)
            wanted = OffsetRange(place, first, min(end, first + max(0, limit)))
            try:
                with self.index.reading() as db:
                    return [(chunk, wanted) for chunk in find_chunks(db, topic, wanted)]
            except CorruptionError:
                if self._view.bounds(place) == (topic, begin, end):
                    raise
                # Retention or a deletion came in between: look again.

    def locate(self, ranges: Sequence[OffsetRange]) -> list[list[Chunk]]:
        return [self._locate(wanted) if wanted.records > 0 else [] for wanted in ranges]

    def _locate(self, wanted: OffsetRange) -> list[Chunk]:
        topic = self._check_kept(wanted)
        try:
            with self.index.reading() as db:
                return find_chunks(db, topic, wanted)
        except CorruptionError:
            self._check_kept(wanted)  # retention or a deletion may have come in between
            raise

    def _check_kept(self, wanted: OffsetRange) -> int:
        """The topic's id, when all of a range can be read."""
        topic, begin, end = self._view.bounds(wanted.place)
        if wanted.start < begin:
            raise MissingError(
                f"Offsets {wanted.start} to {min(begin, wanted.end) - 1} of {wanted.place} are gone: retention kept "
                f"from {begin} on; start from there, or keep records longer (retention.ms, retention.bytes)."
            )
        if wanted.end > end:
            raise MissingError(
                f"Offset {wanted.end - 1} of {wanted.place} is not there: the partition ends at {end}; "
                "if the topic was deleted and made again, start the job as a new generation."
            )
        return topic

    def commit(self, batch: BatchCommit) -> CommitResult:
        check_name("producer", batch.producer)
        with self._store.written_files() as by_value:
            by_value += self._values.write_placed(batch.producer, batch.records)
            written = (*batch.written, *by_value)
            self._store.settle(written)
            with self.index.writing() as db:
                self.faults("commit.locked")
                known = producers.admit_batch(db, batch)
                self.faults("commit.admitted")
                ranges = self._commit_new(db, batch, written) if known is None else []
        if known is not None:
            self.discard([item.chunk.path for item in written])
            return CommitResult(duplicate=True, records=0)
        self.faults("commit.committed")
        return CommitResult(duplicate=False, records=sum(r.records for r in ranges))

    def _commit_new(
        self, db: sqlite3.Connection, batch: BatchCommit, written: Sequence[Written]
    ) -> list[OffsetRange]:
        self._store.check_files(written)
        ranges = place_chunks(db, written)
        self.faults("commit.placed")
        if batch.reader:
            # Only what moved is written again: a batch over few of many partitions stays cheap.
            whole = producers.is_first_of_generation(db, batch)
            moved = {p: end for p, end in batch.end.items() if whole or end != batch.start.get(p)}
            readers.put_progress(db, batch.reader, moved, self._store.now_ms())
        producers.record_batch(db, batch, self.batches_kept)
        self.faults("commit.recorded")
        return ranges

    def open_producer(self, producer: str, fence: Fence) -> CommittedBatch | None:
        check_name("producer", producer)
        with self.index.writing() as db:
            producers.raise_fence(db, producer, fence)
            return producers.find_batch(db, producer, None)

    def committed(self, producer: str, batch_id: int | None = None) -> CommittedBatch | None:
        with self.index.reading() as db:
            return producers.find_batch(db, producer, batch_id)

    def discard(self, paths: Sequence[str]) -> int:
        return self._store.discard(paths)

    def commit_progress(self, reader: str, offsets: Mapping[TopicPartition, int]) -> None:
        check_name("reader", reader)
        with self.index.writing() as db:
            readers.put_progress(db, reader, offsets, self._store.now_ms())

    def progress(
        self, reader: str, topics: Sequence[str], *, stable: bool = True
    ) -> dict[TopicPartition, int]:
        with self.index.reading() as db:
            found = readers.get_progress(db, reader)
        return {place: offset for place, offset in found.items() if place.topic in topics}

    def readers(self, topic: str) -> list[ReaderProgress]:
        self._view.topic(topic)
        with self.index.reading() as db:
            return readers.get_readers(db, topic)

    def forget_reader(self, reader: str) -> bool:
        """Drop a reader that will not come back, so that retention no longer waits for it; False when unknown."""
        with self.index.writing() as db:
            return db.execute("DELETE FROM progress WHERE reader = ?", (reader,)).rowcount > 0

    def maintain(self) -> Upkept:
        """A bounded piece of housework (`upkeep`); the answer says when to call again."""
        return self._upkeep.step()

    def retain(self, topic: str | None = None, *, force: bool = False) -> int:
        """Drop now what one topic, or each, need not keep; how many records. `force`: also what readers still need."""
        if topic is not None:
            self._view.topic(topic)
        round_ = Retainer(self._store)
        round_.begin(topic)
        dropped = 0
        while round_.more:
            dropped += round_.step(force=force)
        return dropped

    def verify(self, topic: str | None = None, *, contents: bool = True) -> Iterator[Finding]:
        """What is torn, corrupt, missing or left out, of one topic or all; changes nothing."""
        if topic is not None:
            self._view.topic(topic)
        return find_problems(self._store, topic=topic, contents=contents)

    def close(self) -> None:
        self._upkeep.close()
        self.index.close()


def _joined(ranges: Sequence[OffsetRange]) -> dict[TopicPartition, OffsetRange]:
    """One range per partition: within a transaction a partition's chunks follow each other."""
    joined: dict[TopicPartition, OffsetRange] = {}
    for part in ranges:
        before = joined.get(part.place)
        joined[part.place] = part if before is None else OffsetRange(part.place, before.start, part.end)
    return joined
