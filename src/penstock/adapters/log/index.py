"""The index: one SQLite file (WAL) that says which records exist. What it does not name, no reader sees.

Rules: one connection writes, under a lock and in immediate transactions, so that a transaction never fails half-way
for having read something old; another one reads. Every change of a partition carries the next number of one
sequence, by which views find what is new; a topic made, changed or deleted raises the catalog's number.
Knows tables, not their meaning.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from penstock.adapters.log.files import disk_full
from penstock.model.errors import CorruptionError, EnvironmentProblem, PenstockError

SCHEMA_VERSION = 1

_TABLES = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS topic (
  id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE,
  partitions INTEGER NOT NULL, config TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS partition (
  topic INTEGER NOT NULL, number INTEGER NOT NULL, first INTEGER NOT NULL, next INTEGER NOT NULL,
  size_bytes INTEGER NOT NULL, changed INTEGER NOT NULL, PRIMARY KEY (topic, number)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS partition_changed ON partition (changed);
CREATE TABLE IF NOT EXISTS segment (
  id INTEGER PRIMARY KEY AUTOINCREMENT, path TEXT NOT NULL UNIQUE, unused_since_ms INTEGER);
CREATE INDEX IF NOT EXISTS segment_unused ON segment (unused_since_ms) WHERE unused_since_ms IS NOT NULL;
CREATE TABLE IF NOT EXISTS chunk (
  topic INTEGER NOT NULL, partition INTEGER NOT NULL, base_offset INTEGER NOT NULL, records INTEGER NOT NULL,
  segment INTEGER NOT NULL, position INTEGER NOT NULL, length INTEGER NOT NULL, crc32 INTEGER NOT NULL,
  payload_bytes INTEGER NOT NULL, max_timestamp_ms INTEGER NOT NULL,
  PRIMARY KEY (topic, partition, base_offset)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunk_segment ON chunk (segment);
CREATE TABLE IF NOT EXISTS job (name TEXT PRIMARY KEY, generation INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS producer (
  name TEXT PRIMARY KEY, generation INTEGER NOT NULL, epoch INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batch (
  producer TEXT NOT NULL, generation INTEGER NOT NULL, batch_id INTEGER NOT NULL, epoch INTEGER NOT NULL,
  starts TEXT NOT NULL, ends TEXT NOT NULL, UNIQUE (producer, generation, batch_id));
CREATE TABLE IF NOT EXISTS progress (
  reader TEXT NOT NULL, topic TEXT NOT NULL, partition INTEGER NOT NULL,
  next INTEGER NOT NULL, at_ms INTEGER NOT NULL, PRIMARY KEY (reader, topic, partition)) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS progress_topic ON progress (topic);
INSERT OR IGNORE INTO meta VALUES ('version', 1), ('sequence', 0), ('catalog', 0);
"""


class Index:
    """Connections to one index file, shared by the threads of a process."""

    def __init__(self, folder: Path, *, durable: bool = True, lock_wait_seconds: float = 30.0) -> None:
        self.folder = folder
        self.path = folder / "index.sqlite"
        self._wait_seconds = lock_wait_seconds
        self._write_lock = threading.Lock()
        self._read_lock = threading.Lock()
        with self._errors_in_words():
            self._writer = self._connect(durable)
            self._prepare()
            self._reader = self._connect(durable)
            self._reader.execute("PRAGMA query_only = ON")

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """One transaction: all that is done inside is kept, or nothing when anything raises."""
        if not self._write_lock.acquire(timeout=self._wait_seconds):
            raise self._busy()
        try:
            with self._errors_in_words():
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise
        finally:
            self._write_lock.release()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """The reading connection, for this thread alone; each statement sees what is committed by then."""
        with self._read_lock, self._errors_in_words():
            yield self._reader

    @contextmanager
    def snapshot(self) -> Generator[sqlite3.Connection]:
        """A reading connection of its own, whose statements all see one moment; for long looks (verify)."""
        with self._errors_in_words():
            connection = self._connect(durable=True)
            try:
                connection.execute("BEGIN")
                yield connection
            finally:
                connection.close()

    def close(self) -> None:
        """Close both connections; a second time does nothing."""
        with self._write_lock, self._read_lock:
            self._writer.close()
            self._reader.close()

    def _connect(self, durable: bool) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path,
            timeout=self._wait_seconds,
            isolation_level=None,
            check_same_thread=False,
            cached_statements=256,
        )
        # NORMAL keeps the file sound after a power cut but may lose the newest commits.
        connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
        connection.execute("PRAGMA cache_size = -16000")
        return connection

    def _prepare(self) -> None:
        """Set WAL mode and make the tables; another process may be doing the same at this moment."""
        deadline = time.monotonic() + self._wait_seconds
        while True:
            try:
                mode = self._writer.execute("PRAGMA journal_mode = WAL").fetchone()[0]
                break
            except sqlite3.OperationalError as error:
                # SQLite does not wait by itself while another process changes the mode.
                if _code(error) != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)
        if mode != "wal":
            raise EnvironmentProblem(
                f"The folder {self.folder} cannot hold a log: its file system has no shared memory maps (SQLite's WAL "
                "needs them); choose a folder on a local disk."
            )
        found = self._writer.execute("SELECT name FROM sqlite_master WHERE name = 'meta'").fetchone()
        if found is None:
            self._writer.executescript(f"BEGIN IMMEDIATE; {_TABLES} COMMIT;")
        version = self._writer.execute("SELECT value FROM meta WHERE name = 'version'").fetchone()[0]
        if version != SCHEMA_VERSION:
            raise EnvironmentProblem(
                f"The log at {self.folder} has format {version} and this version of Penstock reads format "
                f"{SCHEMA_VERSION}; use the version that wrote it, or choose another folder."
            )

    @contextmanager
    def _errors_in_words(self) -> Generator[None]:
        try:
            yield
        except PenstockError:
            raise
        except sqlite3.DatabaseError as error:
            code = _code(error)
            if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise self._busy() from error
            if code == sqlite3.SQLITE_FULL:
                raise disk_full(self.folder) from error
            if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise CorruptionError(
                    f"The index {self.path} is damaged ({error}); restore the log's folder from a copy, or delete the "
                    "folder to start with empty topics."
                ) from error
            if code in (sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY):
                raise EnvironmentProblem(
                    f"The index {self.path} cannot be used ({error}); check that the disk has free space and that this "
                    "user may write to the folder."
                ) from error
            raise

    def _busy(self) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"The log at {self.folder} stayed locked by another writer for {self._wait_seconds:g} s, so nothing was "
            "written; try again, or look for a process that hangs while it holds the log."
        )


def next_sequence(db: sqlite3.Connection) -> int:
    """The number that this transaction's changes of partitions carry."""
    return int(
        db.execute("UPDATE meta SET value = value + 1 WHERE name = 'sequence' RETURNING value").fetchone()[0]
    )


def catalog_changed(db: sqlite3.Connection) -> None:
    """Tell every view that topics were made, changed or deleted."""
    db.execute("UPDATE meta SET value = value + 1 WHERE name = 'catalog'")


def _code(error: sqlite3.Error) -> int:
    """SQLite's primary result code."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF
