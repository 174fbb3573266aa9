"""Small chunks become large ones: consecutive ones of a partition are written again as one, offsets kept.

Rules
- A run is merged when it has RUN_CHUNKS chunks or more, none of which is more than half of it. So each merge at least
  doubles the chunk a record is in, and a record is written again log2(target / chunk) times at most.
- Chunks whose newest records are further apart than a tenth of the topic's retention time stay apart: retention drops
  whole chunks.
- A chunk that cannot be read is left as it is, and named; nothing of it gets into another file.
- The old chunks' files stay until the sweep's grace time is over: somebody may be reading them.
- What was written is checked again inside the transaction: retention, a deletion or another process that merges may
  have come first, and then the new chunk stays out.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.adapters.log.chunks import (
    Held,
    add_segment,
    delete_chunks,
    held_chunks,
    insert_chunks,
    release_segments,
)
from penstock.adapters.log.index import next_sequence
from penstock.adapters.log.segments import Rows, read_chunk, write_chunks
from penstock.adapters.log.store import Store
from penstock.adapters.topics.config import RETENTION_MS, limit_of
from penstock.model.errors import CorruptionError
from penstock.model.ids import TopicPartition
from penstock.model.records import Written

RUN_CHUNKS = 8
_WINDOW_CHUNKS = 256
"""A partition's chunks are looked at this many at a time."""
_PARTITIONS_A_STEP = 256


@dataclass(frozen=True, slots=True)
class _Run:
    topic: int
    place: TopicPartition
    held: Sequence[Held]

    @property
    def bytes(self) -> int:
        return sum(h.chunk.length for h in self.held)


@dataclass(slots=True)
class MergeResult:
    """What a step did; `more` when partitions are left to look at."""

    chunks: int = 0
    """Old chunks that were replaced."""
    problems: list[str] = field(default_factory=list[str])
    more: bool = False


def find_run(held: Sequence[Held], target_bytes: int, span_ms: int | None) -> tuple[int, int] | None:
    """The first run (from, to) of consecutive chunks that is worth merging. Pure."""
    for start in range(len(held) - RUN_CHUNKS + 1):
        best: tuple[int, int] | None = None
        total = largest = 0
        oldest = newest = held[start].max_timestamp_ms
        for stop in range(start, len(held)):
            length, at = held[stop].chunk.length, held[stop].max_timestamp_ms
            oldest, newest = min(oldest, at), max(newest, at)
            if total + length > target_bytes or (span_ms is not None and newest - oldest > span_ms):
                break
            total, largest = total + length, max(largest, length)
            if stop - start + 1 >= RUN_CHUNKS and 2 * largest <= total:
                best = start, stop + 1
        if best is not None:
            return best
    return None


class Merger:
    """Goes through the partitions that changed, a bounded number and a bounded size at a step."""

    def __init__(self, store: Store, target_bytes: int) -> None:
        self._store = store
        self._target_bytes = target_bytes
        self._seen = (-1, -1, -1)
        """The last partition looked at: (changed, topic, number), the order in which they come."""
        self._settled: dict[tuple[int, int], int] = {}
        """Per (topic, partition) the offset before which nothing is left to merge."""
        self._again: list[tuple[int, int]] = []
        """Partitions to look at once more, behind a chunk that could not be read."""

    def step(self, step_bytes: int) -> MergeResult:
        """Merge up to about `step_bytes`."""
        result = MergeResult()
        with self._store.index.reading() as db:
            rows = db.execute(
                "SELECT changed, topic, number FROM partition WHERE (changed, topic, number) > (?, ?, ?) "
                "ORDER BY changed, topic, number LIMIT ?",
                (*self._seen, _PARTITIONS_A_STEP),
            ).fetchall()
        runs: dict[tuple[int, int], _Run] = {}
        budget = step_bytes
        again, self._again = self._again, []
        for place in again:
            budget -= self._consider(place, runs)
        for changed, *place in rows:
            if budget <= 0:
                break
            budget -= self._consider((place[0], place[1]), runs)
            # A merge changes its partition again, so what is left there comes again.
            self._seen = (changed, place[0], place[1])
        else:
            result.more = len(rows) == _PARTITIONS_A_STEP
        result.more = result.more or bool(runs)
        for topic in dict.fromkeys(topic for topic, _ in runs):
            self._merge([run for (of, _), run in runs.items() if of == topic], result)
        return result

    def _consider(self, place: tuple[int, int], runs: dict[tuple[int, int], _Run]) -> int:
        """Add a partition's next run, if it has one; its bytes."""
        run = None if place in runs else self._next_run(*place)
        if run is None:
            return 0
        runs[place] = run
        return run.bytes

    def _next_run(self, topic: int, number: int) -> _Run | None:
        start = self._settled.get((topic, number), 0)
        with self._store.index.reading() as db:
            found = db.execute("SELECT name, config FROM topic WHERE id = ?", (topic,)).fetchone()
            held = held_chunks(db, topic, number, start, _WINDOW_CHUNKS)
        if found is None:
            self._settled.pop((topic, number), None)
            return None
        retention_ms = limit_of(json.loads(found[1]), RETENTION_MS)
        run = find_run(held, self._target_bytes, None if retention_ms is None else retention_ms // 10)
        if run is None:
            self._settled[topic, number] = self._settled_until(held, start)
            return None
        return _Run(topic, TopicPartition(found[0], number), held[run[0] : run[1]])

    def _settled_until(self, held: Sequence[Held], start: int) -> int:
        """The offset from which to look next time, when these chunks hold no run."""
        if len(held) == _WINDOW_CHUNKS:
            return held[_WINDOW_CHUNKS - RUN_CHUNKS].chunk.base_offset
        for one in held:
            if 2 * one.chunk.length <= self._target_bytes:
                return one.chunk.base_offset
        return held[-1].end if held else start

    def _merge(self, runs: Sequence[_Run], result: MergeResult) -> None:
        with self._store.written_files() as written:
            whole = [(run, rows) for run in runs if (rows := self._read(run, result)) is not None]
            written += write_chunks(
                self._store.folder,
                "merge",
                [(run.place, rows) for run, rows in whole],
                durable=self._store.durable,
                faults=self._store.faults,
            )
            if not written:
                return
            self._store.faults("merge.written")
            self._store.settle(written)
            with self._store.index.writing() as db:
                replaced = self._replace(db, [run for run, _ in whole], written)
                self._store.faults("merge.replaced")
        self._store.faults("merge.committed")
        if replaced == 0:
            self._store.discard([written[0].chunk.path])
        result.chunks += replaced

    def _read(self, run: _Run, result: MergeResult) -> Rows | None:
        parts: list[Rows] = []
        for held in run.held:
            try:
                parts.append(read_chunk(self._store.folder, held.chunk, run.place))
            except CorruptionError as error:
                result.problems.append(str(error))
                self._settled[run.topic, run.place.partition] = held.end
                self._again.append((run.topic, run.place.partition))
                return None
        return Rows.joined(parts)

    def _replace(self, db: sqlite3.Connection, runs: Sequence[_Run], written: Sequence[Written]) -> int:
        """Put the new chunks in the place of the old ones that are still there; how many old ones went."""
        there = [
            (run, new)
            for run, new in zip(runs, written, strict=True)
            if held_chunks(db, run.topic, run.place.partition, run.held[0].chunk.base_offset, len(run.held))
            == list(run.held)
        ]
        if not there:
            return 0
        segment, sequence = add_segment(db, written[0].chunk.path), next_sequence(db)
        for run, new in there:
            base, number = run.held[0].chunk.base_offset, run.place.partition
            delete_chunks(db, run.topic, number, base, run.held[-1].end)
            place = (segment, new.chunk.position, new.chunk.length, new.chunk.crc32)
            newest = max(h.max_timestamp_ms for h in run.held)
            payload = sum(h.payload_bytes for h in run.held)
            insert_chunks(db, [(run.topic, number, base, new.chunk.records, *place, payload, newest)])
            db.execute(
                "UPDATE partition SET size_bytes = size_bytes + ?, changed = ? WHERE topic = ? AND number = ?",
                (new.chunk.length - run.bytes, sequence, run.topic, number),
            )
        release_segments(db, {h.segment for run, _ in there for h in run.held}, self._store.now_ms())
        return sum(len(run.held) for run, _ in there)
