"""Many writers and readers of one log at once: offsets without gaps, no record twice, one producer at a time."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.upkeep import UpkeepSettings
from penstock.model.errors import ConflictError, EnvironmentProblem, FencedError
from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import BatchCommit, Record

PLACES = [TopicPartition("t", n) for n in range(3)]

APPENDING = """
import sys
from pathlib import Path
from penstock.adapters.log import EmbeddedLog
from penstock.model.records import Record
log = EmbeddedLog(Path(sys.argv[1]), durable=False)
for n in range(int(sys.argv[3])):
    log.append("t", [Record(b"%d" % (n * 7 + i), f"{sys.argv[2]}.{n}.{i}".encode(), n) for i in range(5)])
    if n % 10 == 9:
        log.maintain()
"""

RACING = """
import sys
from pathlib import Path
from penstock.adapters.log import EmbeddedLog
from penstock.model.errors import FencedError, ConflictError
from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import BatchCommit, Record
log = EmbeddedLog(Path(sys.argv[1]), durable=False)
source, out = TopicPartition("source", 0), TopicPartition("t", 0)
fence = Fence(1, int(sys.argv[2]))
try:
    last = log.open_producer("job-0", fence)
    number, start = (0, 0) if last is None else (last.batch_id + 1, last.end[source])
    for _ in range(60):
        records = tuple((out, Record(None, b"%d" % n, n)) for n in range(start, start + 3))
        log.commit(BatchCommit("job-0", fence, number, {source: start}, {source: start + 3}, "job", records=records))
        number, start = number + 1, start + 3
    print("done")
except FencedError:
    print("fenced")
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    return out.strip()


def all_values(log: EmbeddedLog) -> list[bytes | None]:
    found: list[bytes | None] = []
    for place in PLACES:
        stored = log.read(place, 0, 100_000)
        assert [s.offset for s in stored] == list(range(len(stored)))
        assert log.end_offsets(["t"])[place] == len(stored)
        found += [s.record.value for s in stored]
    return found


def test_threads_and_processes_append_at_once(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", durable=False, upkeep=UpkeepSettings(merge_target_bytes=1 << 16))
    log.create("t", 3)
    others = [start(APPENDING, log.folder, f"p{n}", 60) for n in range(2)]

    def append(name: str) -> None:
        for n in range(60):
            log.append("t", [Record(b"%d" % i, f"{name}.{n}.{i}".encode(), n) for i in range(5)])

    def read(_: int) -> int:
        seen = 0
        for _ in range(60):
            for place, end in log.end_offsets(["t"]).items():
                assert len(log.read(place, max(0, end - 20), min(20, end))) == min(20, end)
                seen += 1
        return seen

    with ThreadPoolExecutor(4) as pool:
        work = [pool.submit(append, name) for name in ("a", "b")]
        looks = pool.submit(read, 0)
        merges = pool.submit(lambda: sum(log.maintain().merged_chunks for _ in range(60)))
        assert looks.result() == 180
        for one in work:
            one.result()
        merges.result()
    for other in others:
        finish(other)
    expected = {
        f"{name}.{n}.{i}".encode() for name in ("a", "b", "p0", "p1") for n in range(60) for i in range(5)
    }
    assert Counter(all_values(log)) == Counter(expected)
    assert list(log.verify()) == []
    log.close()


def test_one_writers_records_of_a_key_stay_in_order(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", durable=False)
    log.create("t", 3)

    def append(name: str) -> None:
        for n in range(40):
            log.append("t", [Record(b"same", f"{name} {n * 2 + i:03}".encode(), n) for i in range(2)])

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(append, ["a", "b"]))
    values = [v.decode() for v in all_values(log) if v is not None]
    for name in ("a", "b"):
        mine = [v for v in values if v.startswith(name)]
        assert mine == sorted(mine)
    log.close()


def test_two_processes_race_as_one_producer(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", durable=False)
    log.create("t", 3)
    runs = [start(RACING, log.folder, epoch) for epoch in (1, 2, 3)]
    said = [finish(run) for run in runs]
    assert said[2] == "done"
    assert set(said) <= {"done", "fenced"}
    values = [int(v) for v in all_values(log) if v is not None]
    assert values == list(range(len(values)))  # nothing twice, nothing left out, in order
    assert log.progress("job", ["source"]) == {TopicPartition("source", 0): len(values)}
    log.close()


def test_threads_that_commit_the_same_batch_commit_it_once(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", durable=False)
    log.create("t", 3)
    source = TopicPartition("source", 0)
    batch = BatchCommit(
        "job-0", Fence(1, 1), 0, {source: 0}, {source: 1}, records=((PLACES[0], Record(None, b"once", 1)),)
    )
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: log.commit(batch).duplicate, range(4)))
    assert sorted(results) == [False, True, True, True]
    assert all_values(log) == [b"once"]
    log.close()


def test_a_zombie_in_another_process_is_refused(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", durable=False)
    log.create("t", 3)
    log.open_producer("job-0", Fence(1, 5))
    assert finish(start(RACING, log.folder, 4)) == "fenced"
    assert all_values(log) == []
    log.close()


def test_two_processes_open_a_new_log_at_once(tmp_path: Path) -> None:
    code = "import sys; from pathlib import Path; from penstock.adapters.log import EmbeddedLog as E; "
    code += "l = E(Path(sys.argv[1])); print(l.create('t', 3)); l.close()"
    said = [finish(run) for run in [start(code, tmp_path / "log") for _ in range(4)]]
    assert sorted(said) == ["False", "False", "False", "True"]


def test_a_lock_that_is_never_given_up_is_a_sentence(tmp_path: Path) -> None:
    log = EmbeddedLog(tmp_path / "log", lock_wait_seconds=0.1)
    log.create("t", 3)
    other = EmbeddedLog(tmp_path / "log")
    with other.index.writing(), pytest.raises(EnvironmentProblem, match="stayed locked"):
        log.append("t", [Record(None, b"x", 1)])
    with other.index.writing():  # readers never wait for writers
        assert log.end_offsets(["t"])[PLACES[0]] == 0
    log.append("t", [Record(None, b"x", 1)])
    other.close()
    log.close()


def test_another_writers_topics_are_seen_at_once(tmp_path: Path) -> None:
    one, two = EmbeddedLog(tmp_path / "log"), EmbeddedLog(tmp_path / "log")
    one.create("t", 3)
    assert two.topics() == ["t"]
    two.append("t", [Record(None, b"x", 1)], 2)
    assert one.end_offsets(["t"])[PLACES[2]] == 1
    one.delete("t")
    one.create("t", 1)
    assert two.end_offsets(["t"]) == {PLACES[0]: 0}
    one.close()
    two.close()


def test_ten_thousand_partitions(
    tmp_path: Path, record_testsuite_property: Callable[[str, object], None]
) -> None:
    """Works at that size; how long it took is told, not judged."""
    log = EmbeddedLog(tmp_path / "log", durable=False)
    took: dict[str, float] = {}

    def timed(name: str, call: Callable[[], object]) -> object:
        began = time.perf_counter()
        found = call()
        took[name] = round(time.perf_counter() - began, 4)
        return found

    timed("create", lambda: log.create("wide", 10_000))
    places = [TopicPartition("wide", n) for n in range(10_000)]
    records = tuple((place, Record(None, b"x", 1)) for place in places)
    offsets = dict.fromkeys(places, 0)
    ends = dict.fromkeys(places, 1)
    timed(
        "commit", lambda: log.commit(BatchCommit("j-0", Fence(1, 1), 0, offsets, ends, "j", records=records))
    )
    assert timed("end_offsets after a commit", lambda: log.end_offsets(["wide"])) == ends
    timed("end_offsets again", lambda: log.end_offsets(["wide"]))
    assert timed("describe", lambda: log.describe("wide").records) == 10_000
    assert timed("progress", lambda: log.progress("j", ["wide"])) == ends
    one = places[77]
    timed("small commit", lambda: log.append("wide", [Record(None, b"y", 1)], 77))
    assert timed("end_offsets after a small commit", lambda: log.end_offsets(["wide"]))[one] == 2  # type: ignore[index]
    for name, seconds in took.items():
        record_testsuite_property(f"10,000 partitions: {name} (seconds)", seconds)
    print(took)
    log.close()


def test_a_slow_reader_does_not_hold_up_writers(tmp_path: Path) -> None:
    """A long look (verify) is open while another thread commits: neither waits for the other."""
    log = EmbeddedLog(tmp_path / "log", durable=False)
    log.create("t", 3)
    log.append("t", [Record(b"%d" % n, b"x", n) for n in range(30)])
    looking, go_on = threading.Event(), threading.Event()

    def look() -> int:
        with log.index.snapshot() as db:
            before = db.execute("SELECT sum(next) FROM partition").fetchone()[0]
            looking.set()
            assert go_on.wait(30)
            return int(before == db.execute("SELECT sum(next) FROM partition").fetchone()[0])

    with ThreadPoolExecutor(1) as pool:
        looks = pool.submit(look)
        assert looking.wait(30)
        log.append("t", [Record(b"more", b"x", 1)])
        go_on.set()
        assert looks.result() == 1
    assert sum(log.end_offsets(["t"]).values()) == 31
    log.close()


def test_fencing_errors_are_conflicts() -> None:
    assert issubclass(FencedError, ConflictError)
