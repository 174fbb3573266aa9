"""What a log of segment files promises beyond topics (`ports.topics.SegmentLog`): commits of whole micro-batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.segments import Rows, write_chunks
from penstock.model.errors import ConflictError, CorruptionError, FencedError, MissingError, SpecError
from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import BatchCommit, CommittedBatch, OffsetRange, Record, Written
from penstock.ports.topics import SegmentLog

SOURCE = TopicPartition("words", 0)
COUNTS = TopicPartition("counts", 1)
TOTALS = TopicPartition("totals", 0)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[SegmentLog]:
    log = EmbeddedLog(tmp_path / "log")
    log.create("words", 1)
    log.create("counts", 2)
    log.create("totals", 1)
    yield log
    log.close()


def write(
    log: SegmentLog, *parts: tuple[TopicPartition, list[bytes]], producer: str = "count-0"
) -> tuple[Written, ...]:
    """A segment file, as a Spark task writes it."""
    folder = Path(log.segment_folder).parent
    rows = [(place, Rows.of([Record(None, v, i) for i, v in enumerate(values)])) for place, values in parts]
    return write_chunks(folder, producer, rows)


def batch(
    number: int, start: int, end: int, *written: Written, epoch: int = 1, generation: int = 1
) -> BatchCommit:
    return BatchCommit(
        "count-0", Fence(generation, epoch), number, {SOURCE: start}, {SOURCE: end}, "count", tuple(written)
    )


def values(log: SegmentLog, place: TopicPartition) -> list[bytes | None]:
    return [stored.record.value for stored in log.read(place, 0, 1000)]


def files(log: SegmentLog) -> set[str]:
    return {path.name for path in Path(log.segment_folder).iterdir()}


def test_a_commit_holds_all_topics_the_progress_and_values(log: SegmentLog) -> None:
    written = write(log, (COUNTS, [b"a", b"b"]), (TOTALS, [b"t"]))
    dead = Record(None, b"dead", 1)
    result = log.commit(replace(batch(0, 0, 5, *written), records=((TOTALS, dead),)))
    assert (result.duplicate, result.records) == (False, 4)
    assert values(log, COUNTS) == [b"a", b"b"]
    assert values(log, TOTALS) == [b"t", b"dead"]
    assert log.progress("count", [SOURCE.topic]) == {SOURCE: 5}
    assert log.committed("count-0") == CommittedBatch("count-0", Fence(1, 1), 0, {SOURCE: 0}, {SOURCE: 5})
    assert log.committed("count-0", 0) == log.committed("count-0")
    assert log.committed("count-0", 1) is None
    assert log.committed("count-1") is None


def test_nothing_is_seen_before_the_commit(log: SegmentLog) -> None:
    write(log, (COUNTS, [b"a"]))
    assert values(log, COUNTS) == []
    assert log.end_offsets(["counts"])[COUNTS] == 0


def test_an_equal_commit_is_a_duplicate_and_its_files_go(log: SegmentLog) -> None:
    log.commit(batch(0, 0, 5, *write(log, (COUNTS, [b"a"]))))
    before = files(log)
    again = write(log, (COUNTS, [b"a"]))
    assert log.commit(batch(0, 0, 5, *again)).duplicate
    assert values(log, COUNTS) == [b"a"]
    assert files(log) == before


def test_a_commit_sent_twice_keeps_its_files(log: SegmentLog) -> None:
    commit = batch(0, 0, 5, *write(log, (COUNTS, [b"a"])))
    log.commit(commit)
    assert log.commit(commit).duplicate
    assert values(log, COUNTS) == [b"a"]


def test_a_known_batch_with_other_offsets_is_a_conflict(log: SegmentLog) -> None:
    log.commit(batch(0, 0, 5, *write(log, (COUNTS, [b"a"]))))
    with pytest.raises(ConflictError, match="end of words/0 is recorded as 5 and came as 6"):
        log.commit(batch(0, 0, 6, *write(log, (COUNTS, [b"a"]))))
    assert values(log, COUNTS) == [b"a"]


def test_batches_of_a_generation_form_a_chain(log: SegmentLog) -> None:
    log.commit(batch(3, 10, 20))
    with pytest.raises(ConflictError, match="does not start where batch 3 ended"):
        log.commit(batch(4, 0, 30))
    with pytest.raises(ConflictError, match="after batch 3"):
        log.commit(batch(2, 0, 10))
    log.commit(batch(4, 20, 30))
    log.commit(batch(0, 25, 40, generation=2))  # a new generation may start anywhere
    assert log.progress("count", [SOURCE.topic]) == {SOURCE: 40}


def test_the_first_batch_of_a_generation_says_all_its_progress(log: SegmentLog) -> None:
    other = TopicPartition("counts", 0)
    first = BatchCommit("sum-0", Fence(1, 1), 0, {SOURCE: 3, other: 0}, {SOURCE: 3, other: 0}, "sum")
    log.commit(first)
    assert log.progress("sum", [SOURCE.topic, other.topic]) == {SOURCE: 3, other: 0}
    log.commit_progress("sum", {SOURCE: 1})
    log.commit(replace(first, batch_id=1, start=first.end, end={SOURCE: 3, other: 2}))
    assert log.progress("sum", [SOURCE.topic, other.topic]) == {
        SOURCE: 1,
        other: 2,
    }  # what did not move is not said again
    again = replace(first, fence=Fence(2, 1), start={SOURCE: 3, other: 2}, end={SOURCE: 3, other: 2})
    log.commit(again)
    assert log.progress("sum", [SOURCE.topic, other.topic]) == {SOURCE: 3, other: 2}


def test_older_runs_are_fenced_off(log: SegmentLog) -> None:
    log.open_producer("count-0", Fence(1, 2))
    with pytest.raises(FencedError, match="generation 1, epoch 1"):
        log.commit(batch(0, 0, 5, epoch=1))
    with pytest.raises(FencedError):
        log.open_producer("count-0", Fence(1, 1))
    log.commit(batch(0, 0, 5, epoch=2))
    assert log.open_producer("count-0", Fence(2, 1)) == log.committed("count-0")
    with pytest.raises(FencedError):
        log.commit(batch(1, 5, 6, epoch=2))


def test_a_new_generation_of_one_task_fences_all_tasks_of_its_job(log: SegmentLog) -> None:
    log.open_producer("count-1", Fence(1, 1))
    log.open_producer("count-0", Fence(2, 1))
    with pytest.raises(FencedError, match="job count is at generation 2"):
        log.commit(replace(batch(0, 0, 5), producer="count-1"))
    log.open_producer("total-0", Fence(1, 1))  # another job's task is not touched


def test_a_fenced_commit_leaves_nothing(log: SegmentLog) -> None:
    log.open_producer("count-0", Fence(2, 1))
    zombie = replace(batch(0, 0, 5), records=((COUNTS, Record(None, b"zombie", 1)),))
    with pytest.raises(FencedError):
        log.commit(zombie)
    assert values(log, COUNTS) == []
    assert log.progress("count", [SOURCE.topic]) == {}
    assert files(log) == set()


def test_a_commit_to_a_missing_topic_commits_nothing(log: SegmentLog) -> None:
    nowhere = TopicPartition("nowhere", 0)
    written = write(log, (COUNTS, [b"a"]), (nowhere, [b"b"]))
    with pytest.raises(MissingError, match="no topic 'nowhere'"):
        log.commit(batch(0, 0, 5, *written))
    assert values(log, COUNTS) == []
    assert log.committed("count-0") is None


def test_a_torn_or_missing_file_is_not_committed(log: SegmentLog) -> None:
    written = write(log, (COUNTS, [b"a" * 100]))
    path = Path(log.segment_folder).parent / written[0].chunk.path
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    with pytest.raises(CorruptionError, match=f"has {len(whole) - 1} of {len(whole)} bytes"):
        log.commit(batch(0, 0, 5, *written))
    path.unlink()
    with pytest.raises(CorruptionError, match="is missing"):
        log.commit(batch(0, 0, 5, *written))
    assert log.committed("count-0") is None
    assert values(log, COUNTS) == []


@pytest.mark.parametrize(
    "path", ["../index.sqlite", "/etc/passwd", "segments/../x.arrow", "segments/a.txt", ""]
)
def test_a_path_out_of_the_folder_is_refused(log: SegmentLog, path: str) -> None:
    written = write(log, (COUNTS, [b"a"]))[0]
    with pytest.raises(SpecError, match="path"):
        log.commit(batch(0, 0, 5, replace(written, chunk=replace(written.chunk, path=path))))
    with pytest.raises(SpecError, match="path"):
        log.discard([path])


def test_discard_deletes_only_what_no_commit_names(log: SegmentLog) -> None:
    kept = write(log, (COUNTS, [b"a"]))
    log.commit(batch(0, 0, 5, *kept))
    orphan = write(log, (COUNTS, [b"b"]))
    assert log.discard([kept[0].chunk.path, orphan[0].chunk.path, orphan[0].chunk.path]) == 1
    assert values(log, COUNTS) == [b"a"]


def test_located_chunks_cover_a_range(log: SegmentLog) -> None:
    for n in range(5):
        log.commit(batch(n, n, n + 1, *write(log, (COUNTS, [b"%d" % n] * 3))))
    wanted = [OffsetRange(COUNTS, 4, 11), OffsetRange(SOURCE, 0, 0), OffsetRange(COUNTS, 3, 6)]
    first, none, one = log.locate(wanted)
    assert [(c.base_offset, c.records) for c in first] == [(3, 3), (6, 3), (9, 3)]
    assert none == []
    assert [(c.base_offset, c.records) for c in one] == [(3, 3)]


def test_locating_what_is_not_there_is_a_sentence(log: SegmentLog) -> None:
    log.commit(batch(0, 0, 1, *write(log, (COUNTS, [b"a"] * 3))))
    with pytest.raises(MissingError, match="ends at 3"):
        log.locate([OffsetRange(COUNTS, 0, 4)])


def test_old_batches_are_forgotten_but_not_the_newest(log: SegmentLog) -> None:
    for n in range(130):
        log.commit(batch(n, n, n + 1))
    newest = log.committed("count-0")
    assert newest is not None
    assert newest.batch_id == 129
    assert log.committed("count-0", 129 - 50) is not None
    assert log.committed("count-0", 0) is None
