"""The log is ended at every step it takes: by an error, and by kill -9. What is readable after is all or nothing."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log import faults as points
from penstock.adapters.log.upkeep import UpkeepSettings
from penstock.model.errors import EnvironmentProblem
from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import BatchCommit, Record

OUT = TopicPartition("out", 0)
MORE = TopicPartition("more", 0)
SOURCE = TopicPartition("source", 0)
QUICK = UpkeepSettings(grace_seconds=0.0, orphan_age_seconds=1.0, retention_seconds=0.0, orphan_seconds=0.0)
"""All housework at once: these tests live in 2096, where every file is old."""


class Crash(Exception):
    """Ends an operation."""


class CrashAt:
    """A fault hook that raises (or worse) when its point comes."""

    def __init__(self, point: str, error: Exception | None = None) -> None:
        self.point, self.error, self.hits = point, error or Crash(point), 0

    def __call__(self, point: str) -> None:
        if point == self.point:
            self.hits += 1
            raise self.error


def open_log(folder: Path, hook: object = None) -> EmbeddedLog:
    return EmbeddedLog(folder, durable=False, faults=hook, clock=lambda: 4e9, upkeep=QUICK)  # type: ignore[arg-type]


def prepare(folder: Path) -> None:
    log = open_log(folder)
    log.create("out", 1)
    log.create("more", 1)
    log.create("old", 1, {"retention.ms": "1000"})
    log.create("source", 1)
    log.commit(batch(0))
    for n in range(10):
        log.append("out", [Record(None, b"small %d" % n, 1)], 0)
    log.append("old", [Record(None, b"old", 1)], 0)
    log.close()


def batch(number: int) -> BatchCommit:
    return BatchCommit(
        "job-0",
        Fence(1, 1),
        number,
        {SOURCE: number * 10},
        {SOURCE: number * 10 + 10},
        "job",
        records=((OUT, Record(None, b"out %d" % number, 1)), (MORE, Record(None, b"more %d" % number, 1))),
    )


def operate(log: EmbeddedLog, point: str) -> None:
    """The operation that passes a point."""
    kind = point.split(".")[0]
    if kind in ("commit", "segment"):
        log.commit(batch(1))
    elif kind == "append":
        log.append("out", [Record(b"k", b"appended", 1)])
    else:
        for _ in range(4):
            log.maintain()


def check(folder: Path, point: str) -> None:
    """Readable, nothing half-done, and the operation can be done again."""
    log = open_log(folder)
    assert list(log.verify()) == []
    out = [r.record.value for r in log.read(OUT, 0, 99)]
    more = [r.record.value for r in log.read(MORE, 0, 99)]
    assert out[:11] == [b"out 0", *(b"small %d" % n for n in range(10))]
    landed = point.endswith(".committed")
    if point.startswith(("commit", "segment")):
        assert out[11:] == ([b"out 1"] if landed else [])
        assert more == ([b"more 0", b"more 1"] if landed else [b"more 0"])
        assert log.progress("job", [SOURCE.topic]) == {SOURCE: 20 if landed else 10}
        committed = log.committed("job-0")
        assert committed is not None
        assert committed.batch_id == (1 if landed else 0)
        assert log.commit(batch(1)).duplicate == landed
    elif point.startswith("append"):
        assert out[11:] == ([b"appended"] if landed else [])
    for _ in range(5):
        log.maintain()
    assert list(log.verify()) == []
    assert log.read(TopicPartition("old", 0), 0, 9) == []
    assert [r.record.value for r in log.read(OUT, 0, 11)] == out[:11]
    named = {path for (path,) in log.index._reader.execute("SELECT path FROM segment")}
    assert {f"segments/{p.name}" for p in Path(log.segment_folder).iterdir()} == named
    log.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    prepare(tmp_path / "log")
    yield tmp_path / "log"


@pytest.mark.parametrize("point", points.POINTS)
def test_an_error_at_any_step(folder: Path, point: str) -> None:
    hook = CrashAt(point)
    log = open_log(folder, hook)
    with pytest.raises(Crash):
        operate(log, point)
    assert hook.hits == 1
    log.close()
    check(folder, point)


@pytest.mark.parametrize("point", points.POINTS)
def test_the_same_log_goes_on_after_an_error(folder: Path, point: str) -> None:
    hook = CrashAt(point)
    log = open_log(folder, hook)
    with pytest.raises(Crash):
        operate(log, point)
    hook.point = ""
    operate(log, point)
    log.close()
    log = open_log(folder)
    assert list(log.verify()) == []
    assert len(log.read(MORE, 0, 9)) == (2 if point.startswith(("commit", "segment")) else 1)
    log.close()


@pytest.mark.parametrize("point", [p for p in points.POINTS if not p.endswith(".committed")])
def test_a_full_disk_at_any_step_is_a_sentence(folder: Path, point: str) -> None:
    log = open_log(folder, CrashAt(point, OSError(errno.ENOSPC, "No space left on device")))
    if point.startswith(("commit", "segment", "append", "merge")):
        with pytest.raises(EnvironmentProblem, match=r"disk that holds the log at .* is full"):
            operate(log, point)
    else:
        with pytest.raises(OSError, match="No space left"):
            operate(log, point)
    log.close()
    check(folder, point)


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
import importlib.util
spec = importlib.util.spec_from_file_location("crashes", {me!r})
crashes = importlib.util.module_from_spec(spec)
sys.modules["crashes"] = crashes
spec.loader.exec_module(crashes)
from pathlib import Path

def hook(point):
    if point == {point!r}:
        os.kill(os.getpid(), signal.SIGKILL)

log = crashes.open_log(Path({folder!r}), hook)
crashes.operate(log, {point!r})
"""


@pytest.mark.parametrize("point", points.POINTS)
def test_kill_9_at_any_step(folder: Path, point: str) -> None:
    tests = str(Path(__file__).parents[2])
    code = KILLED.format(tests=tests, me=__file__, point=point, folder=str(folder))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    check(folder, point)


FILLED = """
import errno, os, resource, sys
from pathlib import Path
from penstock.adapters.log import EmbeddedLog
from penstock.model.errors import EnvironmentProblem
from penstock.model.ids import TopicPartition
from penstock.model.records import Record

log = EmbeddedLog(Path(sys.argv[1]))
if sys.argv[2:]:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    payload = b"x" * (int(sys.argv[2]) * 2)
else:
    payload = b"x" * 200_000
kept = 0
for n in range(1000):
    try:
        log.append("t", [Record(b"k", payload if n >= 3 else b"small", n)], 0)
        kept += 1
    except EnvironmentProblem as problem:
        print(kept, problem)
        break
assert len(log.read(TopicPartition("t", 0), 0, 10_000)) == kept
assert list(log.verify()) == []
"""


def fill(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", FILLED, *arguments], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def check_after_full(folder: Path, said: str) -> None:
    kept = int(said.split()[0])
    assert kept >= 3
    assert "is full" in said
    log = EmbeddedLog(folder)
    assert log.end_offsets(["t"])[TopicPartition("t", 0)] == kept
    assert len(log.read(TopicPartition("t", 0), 0, 10_000)) == kept
    assert list(log.verify()) == []
    named = {path for (path,) in log.index._reader.execute("SELECT path FROM segment")}
    assert {f"segments/{p.name}" for p in Path(log.segment_folder).iterdir()} == named
    log.close()


def test_a_file_that_may_not_grow_loses_nothing(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log")
    log.create("t", 1)
    log.close()
    said = fill(str(tmp_path / "log"), str(2 << 20))
    check_after_full(tmp_path / "log", said)


def test_a_full_disk_loses_nothing_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    if (
        os.geteuid() != 0
        or subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(disk)], capture_output=True, check=False
        ).returncode
    ):
        pytest.skip("a small disk cannot be mounted here: this needs root")
    try:
        log = EmbeddedLog(disk / "log")
        log.create("t", 1)
        log.close()
        said = fill(str(disk / "log"))
        check_after_full(disk / "log", said)
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        log = EmbeddedLog(disk / "log")
        kept = log.end_offsets(["t"])[TopicPartition("t", 0)]
        assert log.append("t", [Record(None, b"x" * 200_000, 1)], 0)[TopicPartition("t", 0)].start == kept
        log.close()
    finally:
        subprocess.run(["umount", str(disk)], check=True)
