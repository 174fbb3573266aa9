"""What the marker of an exactly-once job says, and which batch is known by it."""

from __future__ import annotations

import pytest

from penstock.model.errors import ConflictError
from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import BatchCommit, CommittedBatch
from penstock.spark.transactions import Mark, is_known, newest_of, read_mark

A, B = TopicPartition("in", 0), TopicPartition("in", 1)
FENCE = Fence(2, 5)


def mark(end: int, start: int, batch: int = 7, task: str = "copy-0", fence: Fence = FENCE) -> Mark:
    return Mark(end, task, fence, batch, start)


def held(batch: int = 7) -> CommittedBatch:
    return CommittedBatch("copy-0", FENCE, batch, {A: 10, B: 20}, {A: 15, B: 20})


def batch(number: int, start: tuple[int, int], end: tuple[int, int]) -> BatchCommit:
    return BatchCommit("copy-0", FENCE, number, {A: start[0], B: start[1]}, {A: end[0], B: end[1]}, "copy")


def test_a_mark_comes_back_from_its_note_whatever_lies_behind_it() -> None:
    made = mark(15, 10)
    assert read_mark(15, made.note()) == made
    assert read_mark(15, made.note() + "junk") == made
    assert len(made.note()) < 200  # brokers take 4,096 bytes


@pytest.mark.parametrize("note", ["", "someone else's", "[]", "{}", '{"task": "x"}', "null"])
def test_an_offset_set_by_someone_else_is_no_mark_of_ours(note: str) -> None:
    assert read_mark(15, note) == Mark(15)


def test_what_the_newest_batch_did_not_move_stands_still() -> None:
    found = newest_of("copy-0", FENCE, {A: mark(15, 10), B: mark(20, 12, batch=6)})
    assert found == held()


def test_marks_of_other_tasks_and_generations_tell_of_no_batch() -> None:
    assert newest_of("copy-0", FENCE, {A: mark(15, 10, task="copy-1")}) is None
    assert newest_of("copy-0", FENCE, {A: mark(15, 10, fence=Fence(1, 9))}) is None
    assert newest_of("copy-0", FENCE, {A: Mark(15, "copy-0", FENCE, start=15)}) is None


@pytest.mark.parametrize(
    ("number", "start", "end", "known"),
    [
        (7, (10, 20), (15, 20), True),  # the same again
        (5, (2, 18), (15, 20), True),  # several lost ones as one
        (8, (15, 20), (16, 24), False),  # the next
        (6, (15, 20), (16, 24), False),  # the next after several were one
        (8, (15, 20), (15, 20), False),  # one without records
        (7, (15, 20), (15, 20), True),  # it, again
    ],
)
def test_a_batch_is_known_by_where_it_ends(
    number: int, start: tuple[int, int], end: tuple[int, int], known: bool
) -> None:
    assert is_known(held(), batch(number, start, end)) is known


@pytest.mark.parametrize(("start", "end"), [((10, 20), (14, 20)), ((12, 20), (18, 22)), ((16, 20), (18, 20))])
def test_a_batch_that_fits_nowhere_is_refused(start: tuple[int, int], end: tuple[int, int]) -> None:
    with pytest.raises(ConflictError, match="neither begins nor ends where Kafka holds its batch 7"):
        is_known(held(), batch(8, start, end))


def test_the_first_batch_is_new() -> None:
    assert not is_known(None, batch(0, (0, 0), (5, 5)))
