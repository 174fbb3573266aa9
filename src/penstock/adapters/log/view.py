"""A cheap, always fresh look at topics and their offsets.

`PRAGMA data_version` tells in microseconds whether anything was committed since the last look (by whichever process);
only then the partitions that changed are read again, by their sequence number. A new catalog number means that topics
came or went: everything is read again.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.adapters.log.index import Index
from penstock.adapters.topics.sentences import check_partition, missing_topic
from penstock.model.ids import TopicPartition


@dataclass(slots=True)
class TopicView:
    """A topic as it stood at the last look."""

    id: int
    name: str
    config: Mapping[str, str]
    places: list[TopicPartition]
    """By partition number."""
    begins: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    ends: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    sizes: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])


class View:
    """Topics by name; every method first makes sure that it is fresh."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._version = -1
        self._catalog = -1
        self._seen: int = -1
        self._topics: dict[str, TopicView] = {}
        self._by_id: dict[int, TopicView] = {}

    def names(self) -> list[str]:
        """All topics, in alphabetical order."""
        with self._index.reading() as db:
            self._refresh(db)
            return sorted(self._topics)

    def topic(self, name: str) -> TopicView:
        """A topic's own copy, or a `MissingError` that names those there are."""
        with self._index.reading() as db:
            found = self._find(db, name)
            return TopicView(
                found.id,
                name,
                found.config,
                found.places,
                found.begins.copy(),
                found.ends.copy(),
                found.sizes.copy(),
            )

    def ends(self, names: Sequence[str]) -> dict[TopicPartition, int]:
        """The offset after each partition's newest record."""
        with self._index.reading() as db:
            return _merged([self._find(db, name).ends for name in dict.fromkeys(names)])

    def begins(self, names: Sequence[str]) -> dict[TopicPartition, int]:
        """The offset of each partition's first kept record."""
        with self._index.reading() as db:
            return _merged([self._find(db, name).begins for name in dict.fromkeys(names)])

    def bounds(self, place: TopicPartition) -> tuple[int, int, int]:
        """The topic's id, and begin and end of one partition."""
        with self._index.reading() as db:
            found = self._find(db, place.topic)
            check_partition(place, len(found.places))
            return found.id, found.begins[place], found.ends[place]

    def _find(self, db: sqlite3.Connection, name: str) -> TopicView:
        self._refresh(db)
        found = self._topics.get(name)
        if found is None:
            raise missing_topic(name, sorted(self._topics))
        return found

    def _refresh(self, db: sqlite3.Connection) -> None:
        # The version is read first: what is committed after that shows at the next look.
        version = db.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version:
            return
        catalog = db.execute("SELECT value FROM meta WHERE name = 'catalog'").fetchone()[0]
        if catalog != self._catalog:
            self._reload(db)
            self._catalog = catalog
        else:
            self._update(db)
        self._version = version

    def _reload(self, db: sqlite3.Connection) -> None:
        self._topics, self._by_id, self._seen = {}, {}, -1
        db.execute("BEGIN")  # topics and their partitions must be of one moment
        try:
            for id_, name, partitions, config in db.execute("SELECT id, name, partitions, config FROM topic"):
                places = [TopicPartition(name, n) for n in range(partitions)]
                self._topics[name] = self._by_id[id_] = TopicView(id_, name, json.loads(config), places)
            self._update(db)
        finally:
            db.execute("COMMIT")

    def _update(self, db: sqlite3.Connection) -> None:
        rows = db.execute(
            "SELECT topic, number, first, next, size_bytes, changed FROM partition WHERE changed > ?",
            (self._seen,),
        )
        seen = self._seen
        for topic, number, first, following, size, changed in rows:
            found = self._by_id.get(topic)
            if found is None:  # made since the catalog was read: the next look reloads it
                continue
            place = found.places[int(number)]
            found.begins[place], found.ends[place], found.sizes[place] = first, following, size
            seen = max(seen, changed)
        self._seen = seen


def _merged(parts: list[dict[TopicPartition, int]]) -> dict[TopicPartition, int]:
    merged = parts[0].copy() if parts else {}
    for part in parts[1:]:
        merged.update(part)
    return merged
