"""What the marker of an exactly-once job says, and which batch is known by it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.model.errors import ConflictError, EnvironmentProblem, FencedError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.jobs import Input, JobSpec, Output
from penstock.model.records import BatchCommit, CommittedBatch
from penstock.spark.kafka import KafkaBus
from penstock.spark.transactions import Mark, TransactionalBus, is_known, newest_of, read_mark

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


class Machine:
    """The producers that are open, in place of the Java side; told to fail at a step."""

    def __init__(self, fails_at: str) -> None:
        self.fails_at, self.opened, self.closed = fails_at, list[str](), list[str]()

    def open(self, run: str, id_: str, client: str) -> None:
        self.opened.append(run)

    def close(self, run: str) -> None:
        self.closed.append(run)

    def mark(self, run: str, group: str, entries: str) -> None:
        self._step("mark")

    def commit(self, run: str) -> None:
        self._step("commit")

    def _step(self, name: str) -> None:
        if self.fails_at == name:
            raise EnvironmentProblem(f"the broker went away at {name}.")


def bus_over(machine: Machine, *marks: dict[TopicPartition, tuple[int, str]]) -> TransactionalBus:
    """A bus whose marks are answered so, one after the other."""
    answers = iter(marks)
    topics: Any = SimpleNamespace(
        marked_progress=lambda *_, **__: next(answers), begin_offsets=lambda names: {A: 0, B: 0}
    )
    session: Any = SimpleNamespace(
        sparkContext=SimpleNamespace(
            _jvm=SimpleNamespace(penstock=SimpleNamespace(KafkaTransactions=machine))
        )
    )
    job = JobSpec(name="copy", inputs=(Input(topic="in", view="in"),), outputs=(Output(topic="out"),))
    return TransactionalBus(KafkaBus(topics, {}), session, job)


@pytest.mark.parametrize(
    ("fails_at", "fence_found", "error"),
    [
        ("mark", FENCE, EnvironmentProblem),
        ("commit", FENCE, EnvironmentProblem),
        ("", Fence(9, 1), FencedError),
    ],
)
def test_a_run_that_cannot_take_over_leaves_no_producer(
    fails_at: str, fence_found: Fence, error: type[Exception]
) -> None:
    machine = Machine(fails_at)
    found = mark(5, 0, fence=fence_found)
    bus = bus_over(machine, {}, {A: (found.end, found.note())})
    with pytest.raises(error):
        bus.open(TaskId("copy", 0), FENCE, [A, B])
    assert machine.opened == machine.closed and len(machine.opened) == 1


def test_the_newest_generation_is_known_by_the_marks() -> None:
    found = {A: (5, mark(5, 0, fence=Fence(4, 2)).note()), B: (3, "someone's own note")}
    assert bus_over(Machine(""), found).generation("copy", [A, B]) == 4
    assert bus_over(Machine(""), {}).generation("copy", [A, B]) == 0
