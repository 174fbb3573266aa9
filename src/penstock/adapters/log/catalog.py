"""Which topics there are: made, changed and forgotten. Functions over an open transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from penstock.adapters.log.chunks import release_segments
from penstock.adapters.log.index import catalog_changed, next_sequence
from penstock.adapters.topics.sentences import check_same_partitions


def create_topic(
    db: sqlite3.Connection, topic: str, partitions: int, config: Mapping[str, str] | None
) -> bool:
    """Make a topic, or give the one that is there this (checked) config; whether it was made."""
    wanted = json.dumps(dict(config or {}))
    there = db.execute("SELECT id, partitions, config FROM topic WHERE name = ?", (topic,)).fetchone()
    if there is not None:
        check_same_partitions(topic, there[1], partitions)
        if config is not None and there[2] != wanted:
            db.execute("UPDATE topic SET config = ? WHERE id = ?", (wanted, there[0]))
            catalog_changed(db)
        return False
    made = db.execute(
        "INSERT INTO topic (name, partitions, config) VALUES (?, ?, ?) RETURNING id",
        (topic, partitions, wanted),
    ).fetchone()[0]
    sequence = next_sequence(db)
    db.executemany(
        "INSERT INTO partition VALUES (?, ?, 0, 0, 0, ?)", [(made, n, sequence) for n in range(partitions)]
    )
    catalog_changed(db)
    return True


def delete_topic(db: sqlite3.Connection, topic: int, name: str, now_ms: int) -> None:
    """Forget a topic, its records and how far readers were; files go with a later sweep."""
    segments = [s for (s,) in db.execute("SELECT DISTINCT segment FROM chunk WHERE topic = ?", (topic,))]
    db.execute("DELETE FROM chunk WHERE topic = ?", (topic,))
    db.execute("DELETE FROM partition WHERE topic = ?", (topic,))
    db.execute("DELETE FROM topic WHERE id = ?", (topic,))
    db.execute("DELETE FROM progress WHERE topic = ?", (name,))
    release_segments(db, segments, now_ms)
    catalog_changed(db)
