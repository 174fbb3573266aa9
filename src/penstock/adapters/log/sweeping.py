"""Files that nobody needs any more are deleted: released ones after a grace time, orphans when they are old enough.

Rules
- A *released* file held chunks that were merged, retained away or deleted with their topic. Whoever located them before
  may still be reading: it stays `grace_seconds`.
- An *orphan* is named by no commit: its writer died, or is not done. Only one that nobody wrote to for
  `orphan_age_seconds` goes; a commit that comes later still is refused, because its file is missing.
- Both are deleted while the index is locked, so that no commit can name a file that is going.
- Files that do not look like the log's own are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import islice

from penstock.adapters.log.files import SEGMENTS, is_segment_path, safe_path
from penstock.adapters.log.store import Store

_FILES_A_STEP = 256
_ENTRIES_A_STEP = 2048


class Sweeper:
    """Deletes a bounded number of files at a step."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._entries: Iterator[os.DirEntry[str]] | None = None

    def sweep_released(self, grace_seconds: float) -> int:
        """Delete files released longer ago than the grace time; how many."""
        before = self._store.now_ms() - int(grace_seconds * 1000)
        due = (
            "SELECT id, path FROM segment WHERE unused_since_ms <= ? "
            "AND NOT EXISTS (SELECT 1 FROM chunk WHERE segment = segment.id) LIMIT ?"
        )
        with self._store.index.reading() as db:
            if db.execute(due, (before, 1)).fetchone() is None:
                return 0
        with self._store.index.writing() as db:
            self._store.faults("sweep.locked")
            rows = db.execute(due, (before, _FILES_A_STEP)).fetchall()
            for _, path in rows:
                safe_path(self._store.folder, path).unlink(missing_ok=True)
            self._store.faults("sweep.deleted")
            db.executemany("DELETE FROM segment WHERE id = ?", [(id_,) for id_, _ in rows])
        self._store.faults("sweep.committed")
        return len(rows)

    def begin_orphans(self) -> None:
        """Start a round over all files."""
        self.close()
        self._entries = os.scandir(self._store.folder / SEGMENTS)

    @property
    def more(self) -> bool:
        """Whether the round goes on."""
        return self._entries is not None

    def sweep_orphans(self, age_seconds: float) -> int:
        """Delete orphans among the next files of the round; how many."""
        if self._entries is None:
            return 0
        before = self._store.clock() - age_seconds
        looked = list(islice(self._entries, _ENTRIES_A_STEP))
        if not looked:
            self._entries = None
        old = [
            path for entry in looked if (path := f"{SEGMENTS}/{entry.name}") and _is_old(entry, path, before)
        ]
        return self._store.discard(self._unnamed(old))

    def close(self) -> None:
        """Give up the round."""
        close = getattr(self._entries, "close", None)
        if close is not None:
            close()
        self._entries = None

    def _unnamed(self, paths: list[str]) -> list[str]:
        with self._store.index.reading() as db:
            return [
                path
                for path in paths
                if db.execute("SELECT 1 FROM segment WHERE path = ?", (path,)).fetchone() is None
            ]


def _is_old(entry: os.DirEntry[str], path: str, before: float) -> bool:
    if not is_segment_path(path):
        return False
    try:
        return entry.is_file(follow_symlinks=False) and entry.stat(follow_symlinks=False).st_mtime < before
    except FileNotFoundError:  # another sweep was faster
        return False
