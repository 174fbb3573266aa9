"""Is everything there that the index promises? Looks at every chunk, names what is wrong, and changes nothing.

One finding never hides another: each partition, file and chunk is looked at by itself. Topics are looked at one after
the other, each at one moment; a file that went during the look because it was merged or retained is no finding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from penstock.adapters.log.chunks import Held, held_chunks
from penstock.adapters.log.files import safe_path
from penstock.adapters.log.segments import read_chunk
from penstock.adapters.log.store import Store
from penstock.model.errors import CorruptionError, SpecError
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange

Kind = Literal["missing", "torn", "corrupt", "gap", "damaged index"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, and what it costs."""

    kind: Kind
    path: str
    """The segment file; empty when the index itself is at fault."""
    lost: OffsetRange | None
    """The records that cannot be read."""
    sentence: str


@dataclass(frozen=True, slots=True)
class _Partition:
    topic: int
    place: TopicPartition
    begin: int
    end: int
    held: Sequence[Held]


def find_problems(store: Store, *, topic: str | None = None, contents: bool = True) -> Iterator[Finding]:
    """All findings of one topic, or all; `contents=False` trusts a file that is there and long enough."""
    if topic is None:
        yield from _look_at_index(store)
    with store.index.reading() as db:
        topics = [
            row for row in db.execute("SELECT id, name FROM topic ORDER BY name") if topic in (None, row[1])
        ]
    for id_, name in topics:
        for partition in _partitions(store, id_, name):
            yield from _gaps(partition)
            for held in partition.held:
                finding = _look_at_chunk(store, partition, held, contents)
                if finding is not None and _still_there(store, partition, held):
                    yield finding


def _look_at_index(store: Store) -> Iterator[Finding]:
    with store.index.snapshot() as db:
        for (said,) in db.execute("PRAGMA quick_check"):
            if said != "ok":
                yield Finding(
                    "damaged index",
                    "",
                    None,
                    f"The index {store.index.path} is damaged ({said}); restore the log's folder from a copy.",
                )


def _partitions(store: Store, topic: int, name: str) -> list[_Partition]:
    with store.index.snapshot() as db:
        rows = db.execute(
            "SELECT number, first, next FROM partition WHERE topic = ? ORDER BY number", (topic,)
        ).fetchall()
        return [
            _Partition(
                topic, TopicPartition(name, number), begin, end, held_chunks(db, topic, number, 0, 1 << 62)
            )
            for number, begin, end in rows
        ]


def _gaps(partition: _Partition) -> Iterator[Finding]:
    reached = partition.begin
    for held in partition.held:
        base = held.chunk.base_offset
        if base != reached:
            yield _gap(
                partition,
                min(reached, base),
                max(reached, base),
                "overlap" if base < reached else "leave out",
            )
        reached = held.end
    if reached != partition.end:
        yield _gap(partition, min(reached, partition.end), max(reached, partition.end), "leave out")


def _gap(partition: _Partition, start: int, end: int, how: str) -> Finding:
    return Finding(
        "gap",
        "",
        OffsetRange(partition.place, start, end),
        f"The chunks of topic {partition.place.topic}, partition {partition.place.partition} {how} the offsets {start} "
        f"to {end - 1} in the index; restore the log's folder from a copy, or skip these offsets.",
    )


def _look_at_chunk(store: Store, partition: _Partition, held: Held, contents: bool) -> Finding | None:
    path, lost = held.chunk.path, OffsetRange(partition.place, held.chunk.base_offset, held.end)
    try:
        size = safe_path(store.folder, path).stat().st_size
    except FileNotFoundError:
        size = None
    except SpecError as error:
        return Finding("damaged index", path, lost, str(error))
    needed = held.chunk.position + held.chunk.length
    kind: Kind = "missing" if size is None else "torn" if size < needed else "corrupt"
    if kind == "corrupt" and not contents:
        return None
    try:
        read_chunk(store.folder, held.chunk, partition.place)
    except CorruptionError as error:
        return Finding(kind, path, lost, str(error))
    return None


def _still_there(store: Store, partition: _Partition, held: Held) -> bool:
    with store.index.reading() as db:
        base = held.chunk.base_offset
        return held_chunks(db, partition.topic, partition.place.partition, base, 1) == [held]
