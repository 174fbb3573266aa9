"""Old records make room: by age and by size per partition, whole chunks only, and never past the slowest reader.

Rules
- Chunks go from the oldest on; the first that must stay ends it, whatever is behind it (times may be out of order).
- By size, a chunk goes when what stays is still `retention.bytes` or more; by age, when its newest record is older than
  `retention.ms`.
- A chunk that any registered reader has not passed stays, unless the caller forces it.
- The records vanish at once, the files after the sweep's grace time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.adapters.log.chunks import Held, delete_chunks, held_chunks, release_segments
from penstock.adapters.log.index import next_sequence
from penstock.adapters.log.store import Store
from penstock.adapters.topics.config import RETENTION_BYTES, RETENTION_MS, limit_of

_PARTITIONS_A_STEP = 512
_CHUNKS_A_TIME = 256


@dataclass(frozen=True, slots=True)
class Limits:
    """What a topic keeps; None keeps all."""

    age_ms: int | None
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class _Kept:
    topic: int
    name: str
    partition: int
    limits: Limits


def count_expired(
    held: Iterable[Held], size_bytes: int, limits: Limits, now_ms: int, floor: int | None
) -> int:
    """How many chunks, from the oldest on, may go. `floor`: the offset that the slowest reader takes next. Pure."""
    expired = 0
    for one in held:
        too_old = limits.age_ms is not None and one.max_timestamp_ms < now_ms - limits.age_ms
        too_much = limits.size_bytes is not None and size_bytes - one.chunk.length >= limits.size_bytes
        if not (too_old or too_much) or (floor is not None and one.end > floor):
            break
        size_bytes -= one.chunk.length
        expired += 1
    return expired


class Retainer:
    """Goes round the topics that have limits, a bounded number of partitions at a step."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._left: list[_Kept] = []

    def begin(self, topic: str | None = None) -> None:
        """Start a round over one topic, or all."""
        with self._store.index.reading() as db:
            rows = db.execute("SELECT id, name, partitions, config FROM topic ORDER BY id DESC").fetchall()
        self._left = []
        for id_, name, partitions, text in rows:
            config: dict[str, str] = json.loads(text)
            limits = Limits(limit_of(config, RETENTION_MS), limit_of(config, RETENTION_BYTES))
            if topic in (None, name) and limits != Limits(None, None):
                self._left += [_Kept(id_, name, n, limits) for n in reversed(range(partitions))]

    @property
    def more(self) -> bool:
        """Whether the round goes on."""
        return bool(self._left)

    def step(self, *, force: bool = False) -> int:
        """Drop what may go from the next partitions of the round; how many records went."""
        now_ms = self._store.now_ms()
        dropped = 0
        for _ in range(min(_PARTITIONS_A_STEP, len(self._left))):
            kept = self._left.pop()
            with self._store.index.reading() as db:  # mostly there is nothing to do: no need to lock for that
                due = _expired(db, kept, now_ms, force, 1)
            if not due:
                continue
            with self._store.index.writing() as db:
                due = _expired(db, kept, now_ms, force, _CHUNKS_A_TIME)
                if due:
                    self._drop(db, kept, due, now_ms)
                    dropped += due[-1].end - due[0].chunk.base_offset
                self._store.faults("retain.dropped")
            self._store.faults("retain.committed")
            if len(due) == _CHUNKS_A_TIME:
                self._left.append(kept)
        return dropped

    def _drop(self, db: sqlite3.Connection, kept: _Kept, due: list[Held], now_ms: int) -> None:
        first = due[-1].end
        delete_chunks(db, kept.topic, kept.partition, due[0].chunk.base_offset, first)
        db.execute(
            "UPDATE partition SET first = ?, size_bytes = size_bytes - ?, changed = ? WHERE topic = ? AND number = ?",
            (first, sum(h.chunk.length for h in due), next_sequence(db), kept.topic, kept.partition),
        )
        release_segments(db, {h.segment for h in due}, now_ms)


def _expired(db: sqlite3.Connection, kept: _Kept, now_ms: int, force: bool, limit: int) -> list[Held]:
    row = db.execute(
        "SELECT size_bytes FROM partition WHERE topic = ? AND number = ?", (kept.topic, kept.partition)
    ).fetchone()
    if row is None:  # deleted in the meantime
        return []
    held = held_chunks(db, kept.topic, kept.partition, 0, limit)
    floor: int | None = None
    if held and not force:
        floor = db.execute(
            "SELECT min(next) FROM progress WHERE topic = ? AND partition = ?", (kept.name, kept.partition)
        ).fetchone()[0]
    return held[: count_expired(held, row[0], kept.limits, now_ms, floor)]
