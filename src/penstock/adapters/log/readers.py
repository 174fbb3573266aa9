"""How far readers are, and where a time begins in a partition. Functions over an open transaction or connection."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from penstock.adapters.topics.sentences import check_progress
from penstock.model.ids import TopicPartition
from penstock.model.records import Chunk, ReaderProgress


def put_progress(
    db: sqlite3.Connection, reader: str, offsets: Mapping[TopicPartition, int], now_ms: int
) -> None:
    """Record the offset that a reader takes next, per partition; a lower one than before is a rewind, and allowed."""
    check_progress(reader, offsets)
    db.executemany(
        "INSERT OR REPLACE INTO progress VALUES (?, ?, ?, ?, ?)",
        [(reader, place.topic, place.partition, offset, now_ms) for place, offset in offsets.items()],
    )


def get_progress(db: sqlite3.Connection, reader: str) -> dict[TopicPartition, int]:
    """Per partition the offset that a reader takes next."""
    rows = db.execute("SELECT topic, partition, next FROM progress WHERE reader = ?", (reader,))
    return {TopicPartition(topic, number): offset for topic, number, offset in rows}


def get_readers(db: sqlite3.Connection, topic: str) -> list[ReaderProgress]:
    """All readers of a topic, by name and partition."""
    rows = db.execute(
        "SELECT reader, partition, next, at_ms FROM progress WHERE topic = ? ORDER BY reader, partition",
        (topic,),
    )
    return [
        ReaderProgress(reader, TopicPartition(topic, n), offset, at / 1000) for reader, n, offset, at in rows
    ]


def first_chunk_at(db: sqlite3.Connection, topic: int, partition: int, timestamp_ms: int) -> Chunk | None:
    """The first chunk with a record that is as young as this time (milliseconds since 1970), or younger."""
    row = db.execute(
        "SELECT s.path, c.position, c.length, c.crc32, c.records, c.base_offset "
        "FROM chunk c JOIN segment s ON s.id = c.segment "
        "WHERE c.topic = ? AND c.partition = ? AND c.max_timestamp_ms >= ? ORDER BY c.base_offset LIMIT 1",
        (topic, partition, timestamp_ms),
    ).fetchone()
    return None if row is None else Chunk(*row)
