"""The log's housework: merging, retention, sweeping; what it may touch and what not."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.chunks import Held
from penstock.adapters.log.merging import RUN_CHUNKS, find_run
from penstock.adapters.log.retaining import Limits, count_expired
from penstock.adapters.log.segments import Rows, write_chunks
from penstock.adapters.log.upkeep import UpkeepSettings
from penstock.model.errors import CorruptionError, MissingError
from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import BatchCommit, Chunk, OffsetRange, Record

PLACE = TopicPartition("t", 0)


class Time:
    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def make(tmp_path: Path, time: Time) -> Iterator[Callable[..., EmbeddedLog]]:
    made: list[EmbeddedLog] = []

    def make(**settings: float) -> EmbeddedLog:
        upkeep = UpkeepSettings(**{"retention_seconds": 0.0, "orphan_seconds": 0.0, **settings})  # type: ignore[arg-type]
        log = EmbeddedLog(tmp_path / "log", durable=False, clock=time, upkeep=upkeep)
        made.append(log)
        return log

    yield make
    for log in made:
        log.close()


def fill(log: EmbeddedLog, chunks: int, each: int = 3, at_ms: int = 0, topic: str = "t") -> None:
    for n in range(chunks):
        log.append(topic, [Record(b"k", b"%d.%d" % (n, i), at_ms + n) for i in range(each)], 0)


def chunks_of(log: EmbeddedLog) -> list[Chunk]:
    return log.locate([OffsetRange(PLACE, log.begin_offsets(["t"])[PLACE], log.end_offsets(["t"])[PLACE])])[0]


def files(log: EmbeddedLog) -> set[str]:
    return {f"segments/{p.name}" for p in Path(log.segment_folder).iterdir()}


def settle(log: EmbeddedLog) -> int:
    merged = 0
    while (did := log.maintain()).merged_chunks:
        merged += did.merged_chunks
    return merged


def test_small_chunks_become_one_and_offsets_stay(make: Callable[..., EmbeddedLog]) -> None:
    log = make()
    log.create("t", 2)
    fill(log, 20)
    before = log.read(PLACE, 0, 100)
    size = log.describe("t").partitions[0].size_bytes
    assert settle(log) == 20
    assert [(c.base_offset, c.records) for c in chunks_of(log)] == [(0, 60)]
    assert log.read(PLACE, 0, 100) == before
    assert log.offsets_at("t", 7)[PLACE] == 21
    assert log.describe("t").partitions[0].size_bytes == chunks_of(log)[0].length < size
    fill(log, 1)
    assert [r.offset for r in log.read(PLACE, 58, 9)] == [58, 59, 60, 61, 62]


def test_few_chunks_are_left_alone(make: Callable[..., EmbeddedLog]) -> None:
    log = make()
    log.create("t", 1)
    fill(log, RUN_CHUNKS - 1)
    assert settle(log) == 0


def test_merged_files_stay_for_the_grace_time(make: Callable[..., EmbeddedLog], time: Time) -> None:
    log = make(grace_seconds=60.0)
    log.create("t", 1)
    fill(log, 10)
    located = chunks_of(log)
    old = files(log)
    log.maintain()
    time.now += 59
    log.maintain()
    assert old < files(log)
    from penstock.adapters.log.segments import read_chunk

    assert sum(len(read_chunk(log.folder, chunk)) for chunk in located) == 30
    time.now += 2
    assert log.maintain().deleted_files == 10
    assert len(files(log)) == 1
    assert len(log.read(PLACE, 0, 100)) == 30


def test_a_file_goes_only_when_all_its_chunks_are_merged(
    make: Callable[..., EmbeddedLog], time: Time
) -> None:
    log = make(grace_seconds=0.0)
    log.create("t", 2)
    other = TopicPartition("t", 1)
    shared = write_chunks(
        log.folder, "p-0", [(p, Rows.of([Record(None, b"x", 1)])) for p in (PLACE, other)], durable=False
    )
    log.commit(BatchCommit("p-0", Fence(1, 1), 0, {}, {}, written=shared))
    fill(log, 10)
    assert settle(log) == 11
    time.now += 1
    log.maintain()
    assert shared[0].chunk.path in files(log)
    assert [r.record.value for r in log.read(other, 0, 9)] == [b"x"]
    assert list(log.verify()) == []


def test_a_log_opened_twice_merges_once(make: Callable[..., EmbeddedLog]) -> None:
    log, second = make(), make()
    log.create("t", 1)
    fill(log, 10)
    first_plan = log._upkeep._merger._next_run  # the same chunks are planned by both
    run = first_plan(1, 0)
    assert run is not None
    assert settle(second) == 10
    from penstock.adapters.log.merging import MergeResult

    result = MergeResult()
    before = files(log)
    log._upkeep._merger._merge([run], result)
    assert result.chunks == 0
    assert files(log) == before
    assert list(log.verify()) == []


def test_merging_gives_up_on_a_topic_that_is_deleted_meanwhile(make: Callable[..., EmbeddedLog]) -> None:
    log, second = make(), make()
    log.create("t", 1)
    fill(log, 10)
    log.faults = lambda point: None
    store = log._store

    def delete_then(point: str) -> None:
        if point == "merge.written" and "t" in second.topics():
            second.delete("t")

    object.__setattr__(store, "faults", delete_then)
    assert log.maintain().merged_chunks == 0
    assert log.topics() == []
    assert not any(path.startswith("segments/merge") for path in files(log))


def test_retention_by_time(make: Callable[..., EmbeddedLog], time: Time) -> None:
    log = make()
    log.create("t", 1, {"retention.ms": "10000"})
    now_ms = int(time.now * 1000)
    fill(log, 2, at_ms=now_ms - 60_000)
    fill(log, 2, at_ms=now_ms - 5_000)
    assert log.maintain().dropped_records == 6
    assert log.begin_offsets(["t"])[PLACE] == 6
    assert [r.offset for r in log.read(PLACE, 0, 99)] == list(range(6, 12))
    with pytest.raises(MissingError, match=r"Offsets 0 to 5 of t/0 are gone"):
        log.locate([OffsetRange(PLACE, 0, 7)])
    time.now += 60
    assert log.maintain().dropped_records == 6
    assert log.read(PLACE, 0, 99) == []
    assert log.append("t", [Record(None, b"x", now_ms)], 0)[PLACE].start == 12
    assert list(log.verify()) == []


def test_retention_by_bytes_keeps_at_least_the_limit(make: Callable[..., EmbeddedLog]) -> None:
    log = make(merge_target_bytes=1)
    log.create("t", 1)
    fill(log, 10)
    each = chunks_of(log)[0].length
    log.create("t", 1, {"retention.bytes": str(int(each * 2.5))})
    log.maintain()
    assert len(chunks_of(log)) == 3
    assert log.describe("t").partitions[0].size_bytes == sum(c.length for c in chunks_of(log))


def test_retention_waits_for_the_slowest_reader_unless_told(make: Callable[..., EmbeddedLog]) -> None:
    log = make(merge_target_bytes=1)
    log.create("t", 1, {"retention.ms": "1000"})
    fill(log, 10)
    log.commit_progress("fast", {PLACE: 30})
    log.commit_progress("slow", {PLACE: 7})
    assert log.maintain().dropped_records == 6
    assert log.begin_offsets(["t"])[PLACE] == 6
    assert log.retain("t") == 0
    assert log.retain("t", force=True) == 24
    assert log.begin_offsets(["t"])[PLACE] == 30


def test_a_forgotten_reader_is_not_waited_for(make: Callable[..., EmbeddedLog]) -> None:
    log = make()
    log.create("t", 1, {"retention.ms": "1000"})
    fill(log, 3)
    log.commit_progress("gone", {PLACE: 0})
    assert log.retain() == 0
    assert log.forget_reader("gone")
    assert not log.forget_reader("gone")
    assert log.retain() == 9


def test_retention_of_a_missing_topic_is_a_sentence(make: Callable[..., EmbeddedLog]) -> None:
    with pytest.raises(MissingError, match="no topic 'nowhere'"):
        make().retain("nowhere")
    with pytest.raises(MissingError, match="no topic 'nowhere'"):
        list(make().verify("nowhere"))


def test_times_apart_stay_in_chunks_apart(make: Callable[..., EmbeddedLog], time: Time) -> None:
    log = make()
    log.create("t", 1, {"retention.ms": "100000"})
    now_ms = int(time.now * 1000)
    fill(log, 8, at_ms=now_ms - 50_000)
    fill(log, 8, at_ms=now_ms)
    settle(log)
    assert [c.base_offset for c in chunks_of(log)] == [0, 24]


def test_a_deleted_topics_files_are_swept(make: Callable[..., EmbeddedLog], time: Time) -> None:
    log = make(grace_seconds=10.0)
    log.create("t", 1)
    fill(log, 3)
    log.delete("t")
    log.maintain()
    assert len(files(log)) == 3
    time.now += 11
    assert log.maintain().deleted_files == 3
    assert files(log) == set()


def test_only_old_orphans_are_swept(make: Callable[..., EmbeddedLog], time: Time) -> None:
    log = make(orphan_age_seconds=3600.0)
    log.create("t", 1)
    fill(log, 2)
    kept = files(log)
    parts = [(PLACE, Rows.of([Record(None, b"x", 1)]))]
    old, new = (write_chunks(log.folder, "writer-0", parts, durable=False) for _ in range(2))
    foreign = Path(log.segment_folder) / "notes.txt"
    foreign.write_text("not the log's own")
    for name in [*kept, old[0].chunk.path, "segments/notes.txt"]:
        os.utime(log.folder / name, (time.now - 7200, time.now - 7200))
    os.utime(log.folder / new[0].chunk.path, (time.now - 60, time.now - 60))
    deleted = sum(log.maintain().deleted_files for _ in range(3))
    assert deleted == 1
    assert files(log) == {*kept, new[0].chunk.path, "segments/notes.txt"}
    with pytest.raises(CorruptionError, match="is missing"):
        log.commit(BatchCommit("writer-0", Fence(1, 1), 0, {}, {}, written=old))
    log.commit(BatchCommit("writer-0", Fence(1, 1), 0, {}, {}, written=new))
    assert len(log.read(PLACE, 0, 99)) == 7


def test_what_a_crashed_writer_left_goes_and_what_a_running_one_still_writes_stays(
    make: Callable[..., EmbeddedLog], time: Time
) -> None:
    """Both files are newer than all that is committed; only time, and who still writes, tells them apart."""
    log = make(orphan_age_seconds=3600.0)
    log.create("t", 1)
    fill(log, 1)
    kept = files(log)
    parts = [(PLACE, Rows.of([Record(None, b"x", 1)]))]
    (dead,), (alive,) = (write_chunks(log.folder, "writer-0", parts, durable=False) for _ in range(2))
    orphans = {dead.chunk.path, alive.chunk.path}
    for name in orphans:
        os.utime(log.folder / name, (time.now, time.now))
    for _ in range(6):  # three hours, half an hour at a time
        time.now += 1800
        os.utime(log.folder / alive.chunk.path, (time.now, time.now))
        log.maintain()
        orphans -= set() if time.now <= 1_000_000.0 + 3600.0 else {dead.chunk.path}
        assert files(log) == kept | orphans
    log.commit(BatchCommit("writer-0", Fence(1, 1), 0, {}, {}, written=(alive,)))
    time.now += 7200
    log.maintain()
    assert files(log) == kept | {alive.chunk.path} and len(log.read(PLACE, 0, 9)) == 4


def test_an_idle_log_is_left_in_peace(make: Callable[..., EmbeddedLog], time: Time) -> None:
    log = make(retention_seconds=30.0, orphan_seconds=600.0)
    log.create("t", 1, {"retention.ms": "1000"})
    wake = [log.maintain().wake_at for _ in range(3)][-1]
    assert wake == time.now + UpkeepSettings().idle_seconds
    version = log.index._reader.execute("PRAGMA data_version").fetchone()
    log.maintain()
    assert log.index._reader.execute("PRAGMA data_version").fetchone() == version


def test_work_left_over_asks_to_be_called_again(make: Callable[..., EmbeddedLog], time: Time) -> None:
    log = make()
    log.create("t", 1)
    fill(log, 10)
    assert log.maintain().wake_at == time.now


def test_a_clock_that_is_set_back_does_not_stop_retention(
    make: Callable[..., EmbeddedLog], time: Time
) -> None:
    log = make(retention_seconds=30.0)
    log.create("t", 1, {"retention.ms": "1000"})
    log.maintain()
    fill(log, 1)
    time.now -= 10_000
    assert log.maintain().dropped_records == 3


def held(lengths: list[int], times: list[int] | None = None) -> list[Held]:
    times = times or [0] * len(lengths)
    return [
        Held(n, Chunk("segments/a.arrow", 0, length, 0, 1, n), 1, at)
        for n, (length, at) in enumerate(zip(lengths, times, strict=True))
    ]


@given(st.lists(st.integers(1, 1000), max_size=60), st.integers(1, 5000))
def test_a_run_is_worth_merging(lengths: list[int], target: int) -> None:
    run = find_run(held(lengths), target, None)
    if run is not None:
        sizes = lengths[run[0] : run[1]]
        assert len(sizes) >= RUN_CHUNKS
        assert sum(sizes) <= target
        assert 2 * max(sizes) <= sum(sizes)


@given(st.integers(1, 400))
def test_merging_ends_and_rewrites_little(appends: int) -> None:
    """Chunks of one byte that come one by one: each byte is written again at most log2(target) times."""
    target = 256
    lengths: list[int] = []
    rewritten = 0
    for _ in range(appends):
        lengths.append(1)
        while (run := find_run(held(lengths), target, None)) is not None:
            total = sum(lengths[run[0] : run[1]])
            rewritten += total
            lengths[run[0] : run[1]] = [total]
    assert sum(lengths) == appends
    assert rewritten <= appends * 8
    settled = [n for n in lengths if 2 * n > target]
    assert len(lengths) - len(settled) <= 3 * RUN_CHUNKS


@given(
    st.lists(st.tuples(st.integers(1, 100), st.integers(0, 100)), max_size=20),
    st.none() | st.integers(1, 100),
    st.none() | st.integers(1, 1000),
    st.none() | st.integers(0, 25),
)
def test_what_expires(
    came: list[tuple[int, int]], age: int | None, limit: int | None, floor: int | None
) -> None:
    chunks = held([size for size, _ in came], [at for _, at in came])
    total = sum(size for size, _ in came)
    gone = count_expired(chunks, total, Limits(age, limit), 100, floor)
    if floor is not None:
        assert gone <= floor
    if age is None and limit is None:
        assert gone == 0
    for n, (_, at) in enumerate(came[:gone]):
        left = total - sum(size for size, _ in came[: n + 1])
        assert (age is not None and at < 100 - age) or (limit is not None and left >= limit)
