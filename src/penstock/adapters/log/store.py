"""One log's folder and index, with what every writing operation shares: the clock, the fault hook, undoing of files.

Files that a failed operation wrote are deleted, and only those that the index does not name: the transaction may have
landed although the caller saw an error.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from penstock.adapters.log.faults import Faults
from penstock.adapters.log.files import SEGMENTS, disk_errors_in_words, safe_path, sync_folder
from penstock.adapters.log.index import Index
from penstock.model.errors import CorruptionError, PenstockError
from penstock.model.records import Written


@dataclass(frozen=True, slots=True)
class Store:
    """What the parts of an open log work on."""

    folder: Path
    index: Index
    durable: bool
    faults: Faults
    clock: Callable[[], float]
    """Seconds since 1970."""

    def now_ms(self) -> int:
        """The log's clock, in milliseconds since 1970."""
        return int(self.clock() * 1000)

    @contextmanager
    def written_files(self) -> Generator[list[Written]]:
        """Files written for one transaction: deleted when it fails."""
        written: list[Written] = []
        try:
            with disk_errors_in_words(self.folder):
                yield written
        except BaseException:
            with suppress(PenstockError, OSError):  # what stays behind is an orphan, and swept
                self.discard([item.chunk.path for item in written])
            raise

    def settle(self, written: Sequence[Written]) -> None:
        """Before a transaction names files: make their names durable."""
        if self.durable and written:
            sync_folder(self.folder / SEGMENTS)

    def discard(self, paths: Iterable[str]) -> int:
        """Delete files that the index does not name; how many."""
        files = {path: safe_path(self.folder, path) for path in paths}
        if not files:
            return 0
        deleted = 0
        with self.index.writing() as db:  # no commit may name a file while it is being deleted
            for path, file in files.items():
                named = db.execute("SELECT 1 FROM segment WHERE path = ?", (path,)).fetchone()
                if named is None and file.exists():
                    file.unlink()
                    deleted += 1
        return deleted

    def check_files(self, written: Sequence[Written]) -> None:
        """Each file a commit names must be there, whole: a torn or swept one must not become part of a topic."""
        needed: dict[str, int] = {}
        for item in written:
            chunk = item.chunk
            needed[chunk.path] = max(needed.get(chunk.path, 0), chunk.position + chunk.length)
        for path, size_bytes in needed.items():
            try:
                found = safe_path(self.folder, path).stat().st_size
            except FileNotFoundError:
                found = -1
            if found < size_bytes:
                state = "is missing" if found < 0 else f"has {found} of {size_bytes} bytes"
                places = sorted({str(item.place) for item in written if item.chunk.path == path})[:5]
                raise CorruptionError(
                    f"The segment file {path} {state}, so its batch (for {', '.join(places)}) was not committed; "
                    "write the batch again."
                )
