"""Files of the log: names that cannot leave its folder, exclusive creation, and sentences for a failing disk.

Every path that came from outside (a writer's message, the index of another version) passes `safe_path`. A segment
file is created once and never opened for writing again.
"""

from __future__ import annotations

import errno
import os
import re
import uuid
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from penstock.adapters.log.faults import Faults, no_faults
from penstock.model.errors import EnvironmentProblem, SpecError
from penstock.model.ids import check_name

SEGMENTS = "segments"
"""Folder of the segment files inside the log's folder."""

_SEGMENT_PATH = re.compile(rf"^{SEGMENTS}/[a-zA-Z][a-zA-Z0-9_.-]{{0,199}}\.arrow\Z")


def safe_path(folder: Path, relative: str) -> Path:
    """The absolute path of a segment file, or a `SpecError` when the name is not one of the log's own."""
    if not is_segment_path(relative):
        raise SpecError(
            "path",
            relative,
            "is not a segment file of this log",
            f"name a file as {SEGMENTS}/<producer>-<uuid>.arrow",
        )
    return folder / relative


def is_segment_path(relative: str) -> bool:
    """Whether a path is shaped like one of the log's own segment files."""
    return _SEGMENT_PATH.match(relative) is not None


def new_segment_name(producer: str) -> str:
    """A relative path that no other writer takes, whatever host, process or run it is."""
    return f"{SEGMENTS}/{check_name('producer', producer)}-{uuid.uuid4().hex}.arrow"


def create_file(path: Path, pieces: Iterable[bytes], durable: bool, faults: Faults = no_faults) -> None:
    """Write a new file exclusively; it is gone again when writing fails. `durable` syncs it to the disk."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    try:
        try:
            faults("segment.created")
            for piece in pieces:
                _write_all(descriptor, piece)
                faults("segment.chunk_written")
            if durable:
                os.fsync(descriptor)
            faults("segment.synced")
        finally:
            os.close(descriptor)
    except BaseException:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def disk_errors_in_words(folder: Path) -> Generator[None]:
    """Turn what a disk refuses into one sentence; other errors pass."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise disk_full(folder) from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise EnvironmentProblem(
                f"The log at {folder} cannot be written ({os.strerror(error.errno)}); "
                "give this user write access to the folder, or choose another folder for the log."
            ) from error
        raise


def disk_full(folder: Path) -> EnvironmentProblem:
    """The sentence for a full disk."""
    return EnvironmentProblem(
        f"The disk that holds the log at {folder} is full, so nothing of this write was kept; free space there, "
        "or lower the topics' retention.bytes or retention.ms, and try again."
    )


def _write_all(descriptor: int, piece: bytes) -> None:
    view = memoryview(piece)
    while view:
        view = view[os.write(descriptor, view) :]
