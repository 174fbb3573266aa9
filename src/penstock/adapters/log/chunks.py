"""What the index knows of chunks: placing new ones after a partition's end, finding those that hold a range.

Functions over an open transaction or a reading connection; they never touch files. The chunks of a partition cover
[begin, end) without gap or overlap, which `find` checks again as it reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.adapters.log.index import next_sequence
from penstock.adapters.topics.sentences import check_partition, missing_topic
from penstock.model.errors import ConflictError, CorruptionError
from penstock.model.ids import TopicPartition
from penstock.model.records import Chunk, OffsetRange, Written


@dataclass(frozen=True, slots=True)
class Held:
    """A chunk as the index holds it."""

    segment: int
    chunk: Chunk
    payload_bytes: int
    max_timestamp_ms: int

    @property
    def end(self) -> int:
        return self.chunk.base_offset + self.chunk.records


_FIND = """
SELECT s.path, c.position, c.length, c.crc32, c.records, c.base_offset
FROM chunk c JOIN segment s ON s.id = c.segment
WHERE c.topic = ?1 AND c.partition = ?2 AND c.base_offset < ?4 AND c.base_offset >= (
  SELECT max(base_offset) FROM chunk WHERE topic = ?1 AND partition = ?2 AND base_offset <= ?3)
ORDER BY c.base_offset
"""


def place_chunks(db: sqlite3.Connection, written: Sequence[Written]) -> list[OffsetRange]:
    """Give new chunks their offsets, after the end of their partitions, in the order given."""
    filled = [item for item in written if item.chunk.records > 0]
    if not filled:
        return []
    segments = _add_segments(db, dict.fromkeys(item.chunk.path for item in filled))
    ends = _read_ends(db, dict.fromkeys(item.place for item in filled))
    grown: dict[TopicPartition, int] = dict.fromkeys(ends, 0)
    rows: list[tuple[int | str, ...]] = []
    ranges: list[OffsetRange] = []
    for item in filled:
        chunk, (topic, end) = item.chunk, ends[item.place]
        number, newest = item.place.partition, item.max_timestamp_ms
        where = (segments[chunk.path], chunk.position, chunk.length, chunk.crc32)
        rows.append((topic, number, end, chunk.records, *where, item.payload_bytes, newest))
        ranges.append(OffsetRange(item.place, end, end + chunk.records))
        ends[item.place] = topic, end + chunk.records
        grown[item.place] += chunk.length
    insert_chunks(db, rows)
    sequence = next_sequence(db)
    db.executemany(
        "UPDATE partition SET next = ?, size_bytes = size_bytes + ?, changed = ? WHERE topic = ? AND number = ?",
        [(end, grown[place], sequence, topic, place.partition) for place, (topic, end) in ends.items()],
    )
    return ranges


def insert_chunks(db: sqlite3.Connection, rows: Iterable[tuple[int | str, ...]]) -> None:
    """Rows of the chunk table, columns in the table's order."""
    db.executemany("INSERT INTO chunk VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)


def add_segment(db: sqlite3.Connection, path: str) -> int:
    """Name a segment file in the index; a file can be committed once only."""
    try:
        row = db.execute("INSERT INTO segment (path) VALUES (?) RETURNING id", (path,)).fetchone()
    except sqlite3.IntegrityError:
        raise ConflictError(
            f"The segment file {path} is committed already; write each batch into a new file."
        ) from None
    return int(row[0])


def find_chunks(db: sqlite3.Connection, topic: int, wanted: OffsetRange) -> list[Chunk]:
    """The chunks that hold a range of kept offsets, in order."""
    if wanted.start >= wanted.end:
        return []
    rows = db.execute(_FIND, (topic, wanted.place.partition, wanted.start, wanted.end)).fetchall()
    chunks = [Chunk(*row) for row in rows]
    reached = wanted.start
    for chunk in chunks:
        if chunk.base_offset > reached:
            break
        reached = chunk.base_offset + chunk.records
    if reached < wanted.end:
        raise CorruptionError(
            f"The index holds no chunk for topic {wanted.place.topic}, partition {wanted.place.partition}, offset "
            f"{reached} (asked for {wanted.start} to {wanted.end - 1}); restore the log's folder from a copy."
        )
    return chunks


def held_chunks(db: sqlite3.Connection, topic: int, partition: int, start: int, limit: int) -> list[Held]:
    """Up to `limit` chunks of a partition whose first offset is `start` or more, in order."""
    rows = db.execute(
        "SELECT c.segment, c.payload_bytes, c.max_timestamp_ms, s.path, c.position, c.length, c.crc32, c.records, "
        "c.base_offset FROM chunk c JOIN segment s ON s.id = c.segment "
        "WHERE c.topic = ? AND c.partition = ? AND c.base_offset >= ? ORDER BY c.base_offset LIMIT ?",
        (topic, partition, start, limit),
    )
    return [Held(segment, Chunk(*rest), size, newest) for segment, size, newest, *rest in rows]


def delete_chunks(db: sqlite3.Connection, topic: int, partition: int, start: int, end: int) -> None:
    """Forget the chunks of a partition whose first offset is in [start, end)."""
    db.execute(
        "DELETE FROM chunk WHERE topic = ? AND partition = ? AND base_offset >= ? AND base_offset < ?",
        (topic, partition, start, end),
    )


def release_segments(db: sqlite3.Connection, segments: Iterable[int], now_ms: int) -> None:
    """Mark those of these segments that hold no chunk any more; the sweep deletes their files later."""
    db.executemany(
        "UPDATE segment SET unused_since_ms = ?1 WHERE id = ?2 AND unused_since_ms IS NULL "
        "AND NOT EXISTS (SELECT 1 FROM chunk WHERE segment = ?2)",
        [(now_ms, segment) for segment in segments],
    )


def _add_segments(db: sqlite3.Connection, paths: Iterable[str]) -> dict[str, int]:
    return {path: add_segment(db, path) for path in paths}


def _read_ends(
    db: sqlite3.Connection, places: Iterable[TopicPartition]
) -> dict[TopicPartition, tuple[int, int]]:
    """Per place its topic's id and its end."""
    topics: dict[str, tuple[int, int]] = {}
    found: dict[TopicPartition, tuple[int, int]] = {}
    for place in places:
        if place.topic not in topics:
            row = db.execute("SELECT id, partitions FROM topic WHERE name = ?", (place.topic,)).fetchone()
            if row is None:
                names = [name for (name,) in db.execute("SELECT name FROM topic ORDER BY name")]
                raise missing_topic(place.topic, names)
            topics[place.topic] = row
        topic, partitions = topics[place.topic]
        check_partition(place, partitions)
        end = db.execute(
            "SELECT next FROM partition WHERE topic = ? AND number = ?", (topic, place.partition)
        )
        found[place] = topic, end.fetchone()[0]
    return found
