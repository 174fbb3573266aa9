"""A run's journal as a file of JSON lines: `<project>/.penstock/runs/<run id>/journal.jsonl`.

Rules: one entry, one line, written at once and never changed. A torn last line is what a crash leaves, and normal; a
line inside that cannot be read is passed over and said. A disk that takes nothing loses entries, which is counted and
said once there is room again, and stops nothing. Readers may follow a run that other processes write. A journal that has
outgrown its bound is thinned (thinning.py) into a new file that takes the old one's place in one step.
"""

from __future__ import annotations

import json
import os
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

from penstock.adapters.files.codec import decode, encode
from penstock.adapters.files.thinning import Marker, position_of, read_marker, thin
from penstock.model.decisions import Decision
from penstock.model.errors import EnvironmentProblem, MissingError
from penstock.model.ids import check_name
from penstock.model.observations import BatchSample, ContainerSample
from penstock.model.status import RunEvent, RunHeader, RunHistory, RunStatus
from penstock.ports.journal import Entry

JOURNAL = "journal.jsonl"
JOURNAL_BYTES = 64 << 20
"""Bound of a journal: a small pipeline writes about 10 MB an hour, so its newest hour and a half stay whole."""
_NEXT = "journal.jsonl.next"
LOST = "lost"
"""Kind of the event that stands for entries that could not be written."""
UNREADABLE = "unreadable"
"""Kind of the event that stands for a line which cannot be read."""
DROPPED = "dropped"
"""Kind of the event that stands for events and decisions which the bound left no room for."""

_ENTRY = "entry"
_KINDS: dict[str, type[Any]] = {
    "run": RunHeader,
    "status": RunStatus,
    "decision": Decision,
    "event": RunEvent,
    "batch": BatchSample,
    "container": ContainerSample,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


class FileJournal:
    """`ports.journal.Journal` of one run; many threads may write."""

    def __init__(self, runs: Path, run: str, bound_bytes: int = JOURNAL_BYTES) -> None:
        """Opens the journal of `run` under the folder of runs, made where it is not there."""
        self.folder = Path(runs) / check_name("run", run)
        self._bound = self._thin_at = bound_bytes
        self.lost = 0
        """Entries in a row that the disk did not take."""
        self._lock = threading.Lock()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            (self.folder / _NEXT).unlink(missing_ok=True)  # of a writer that died over a thinning
            self._file = _open(self.folder / JOURNAL)
            self._size = os.fstat(self._file).st_size
            if self._size and os.pread(self._file, 1, self._size - 1) != b"\n":
                self._put(b"\n")  # ends a torn line, so that it cannot spoil the next entry
        except OSError as error:
            raise EnvironmentProblem(
                f"The run's journal in {self.folder} cannot be written ({error.strerror}); free the disk or mend its rights."
            ) from error

    def write(self, entry: Entry) -> None:
        """Kept at once: one call of the system, so that another process never sees half of an older entry."""
        line = json.dumps(
            {_ENTRY: _NAMES[type(entry)], **encode(entry)}, separators=(",", ":"), allow_nan=False
        )
        with self._lock:
            if self.lost and self._put(b"\n"):
                text = f"The disk took none of {self.lost} entries of this journal; they are lost."
                gap = RunEvent(getattr(entry, "at", 0.0), LOST, text)
                note = json.dumps({_ENTRY: _NAMES[RunEvent], **encode(gap)}, separators=(",", ":"))
                self.lost = 0 if self._put(note.encode() + b"\n") else self.lost
            if self.lost or not self._put(line.encode() + b"\n"):
                self.lost += 1
            elif self._size > self._thin_at:
                self._thin()

    def _put(self, line: bytes) -> bool:
        """Whether the disk took all of it; half a line is ended before the next one."""
        data = memoryview(line)
        try:
            while data:
                written = os.write(self._file, data)
                self._size += written
                data = data[written:]
        except OSError:
            return False
        return True

    def _thin(self) -> None:
        """Puts a thinned journal in this one's place; where the disk refuses, this one stays, and grows on."""
        path, following = self.folder / JOURNAL, self.folder / _NEXT
        try:
            with following.open("wb") as file:
                file.write(thin(path.read_bytes(), self._bound))
                file.flush()
                os.fsync(file.fileno())
            newer = _open(following)
            os.replace(following, path)
        except OSError:
            with suppress(OSError):
                following.unlink(missing_ok=True)
        else:
            os.close(self._file)
            self._file = newer
            self._size = os.fstat(newer).st_size
        self._thin_at = max(self._bound, self._size + self._bound // 4)

    def close(self) -> None:
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


class FileRuns:
    """`ports.journal.Runs` over the folder of all runs of a project."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(folder)

    def runs(self) -> list[RunHeader]:
        headers = [
            header for path in self.folder.glob(f"*/{JOURNAL}") if (header := _header(path)) is not None
        ]
        return sorted(headers, key=lambda header: (header.started_at, header.run), reverse=True)

    def history(self, run: str | None = None) -> RunHistory:
        header = self._find(run)
        entries, _ = read_entries(self._path(header.run), 0)
        return RunHistory(
            header,
            tuple(e for e in entries if isinstance(e, RunStatus)),
            tuple(e for e in entries if isinstance(e, Decision)),
            tuple(e for e in entries if isinstance(e, RunEvent)),
        )

    def follow(self, run: str | None = None, after: int = 0) -> tuple[list[Entry], int]:
        """Positions are bytes of the journal as it was written, whatever was thinned since: 0 is its beginning."""
        return read_entries(self._path(self._find(run).run), after)

    def _path(self, run: str) -> Path:
        return self.folder / run / JOURNAL

    def _find(self, run: str | None) -> RunHeader:
        headers = self.runs()
        if not headers:
            raise MissingError(f"There is no run under {self.folder} yet; start one with `penstock run`.")
        found = headers[0] if run is None else next((h for h in headers if h.run == run), None)
        if found is None:
            known = ", ".join(header.run for header in headers[:5])
            more = f" and {len(headers) - 5} older" if len(headers) > 5 else ""
            raise MissingError(f"There is no run {run!r} (there are: {known}{more}); name one of these.")
        return found


def _header(path: Path) -> RunHeader | None:
    """A journal's first line; None while there is no whole one."""
    try:
        with path.open("rb") as file:
            entry = _entry(file.readline())
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return entry if isinstance(entry, RunHeader) else None


def read_entries(path: Path, after: int) -> tuple[list[Entry], int]:
    """Entries from position `after` to the last whole line, and the position where that ends."""
    entries: list[Entry] = []
    with path.open("rb") as file:
        first = file.readline()
        marker = read_marker(file.readline())
        if marker is None:
            file.seek(after)
        else:
            entries += _head(path, file, marker, after, first)
            after = max(after, marker.position)
            file.seek(after - marker.position, os.SEEK_CUR)
        data = file.read()
    whole = data.rfind(b"\n") + 1
    entries += _decoded(path, data[:whole].splitlines())
    return entries, after + whole


def read_end(path: Path, size_bytes: int) -> list[Entry]:
    """Entries of a journal's last so many bytes, as they lie there, thinned or not."""
    with path.open("rb") as file:
        begin = max(0, file.seek(0, os.SEEK_END) - size_bytes)
        file.seek(begin)
        lines = file.read().split(b"\n")[:-1]
    return _decoded(path, lines[1:] if begin else lines)  # the first may be half of one


def _head(path: Path, file: BinaryIO, marker: Marker, after: int, first: bytes) -> list[Entry]:
    """What a thinned journal kept of its older part, past a position; leaves the file where the tail begins."""
    if after >= marker.position:
        file.seek(marker.head_bytes, os.SEEK_CUR)
        return []
    entries = _decoded(path, [first]) if after < len(first) else []
    if marker.dropped:
        text = (
            f"The oldest {marker.dropped} events and decisions of this journal are gone: "
            "it has outgrown its bound, which keeps the newest."
        )
        entries.append(RunEvent(marker.dropped_at, DROPPED, text))
    newer: list[bytes] = []
    position = len(first)
    for line in file.read(marker.head_bytes).split(b"\n")[:-1]:
        position = position_of(line, position)
        if position > after:
            newer.append(line)
    return entries + _decoded(path, newer)


def _decoded(path: Path, lines: list[bytes]) -> list[Entry]:
    entries: list[Entry] = []
    newest = 0.0
    for line in lines:
        try:
            entry = _entry(line)
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            text = f"A line of {path} cannot be read ({type(error).__name__}) and was passed over."
            entry = RunEvent(newest, UNREADABLE, text, details=line.decode(errors="replace"))
        newest = getattr(entry, "at", newest)
        entries.append(entry)
    return entries


def _open(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)


def _entry(line: bytes) -> Entry:
    given = json.loads(line)
    return decode(_KINDS[given.pop(_ENTRY)], given)
