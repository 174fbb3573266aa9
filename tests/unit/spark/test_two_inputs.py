"""What a task with two inputs decides: what its sink recorded, what Spark's checkpoint lost, and what a sink of Spark's tells
only at the end. Over a real log, without a Spark session.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.model.errors import ConflictError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.jobs import Input, JobSpec, Output
from penstock.model.records import BatchCommit, CommittedBatch, Record
from penstock.spark.assigned import AssignedPlanner
from penstock.spark.bus import Committed, LogBus, renumbered
from penstock.spark.offsets import StreamId
from penstock.spark.planner import TaskLayout, TaskPlanner, TaskStart
from penstock.spark.transactions import is_known

TASK = TaskId("copy", 0)
A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Newest(LogBus):
    """Keeps its newest batch only and knows a replay by where it ends, as Kafka's transactions do."""

    keeps_batches = False

    def __init__(self, log: EmbeddedLog, newest: CommittedBatch | None = None) -> None:
        super().__init__(log)
        self.newest = newest

    def open(self, *_: Any, **__: Any) -> CommittedBatch | None:
        return self.newest

    def committed(self, task: TaskId, batch_id: int) -> CommittedBatch | None:
        return self.newest if self.newest is not None and self.newest.batch_id == batch_id else None

    def commit(self, commit: BatchCommit, messages: Sequence[str], outputs: Sequence[str]) -> Committed:
        if self.newest is not None and is_known(self.newest, commit):
            self.newest = renumbered(self.newest, commit)
            return Committed(True, {}, 0.0)
        self.newest = CommittedBatch(commit.producer, commit.fence, commit.batch_id, commit.start, commit.end)
        return Committed(False, {}, 0.0)


def two_inputs(bus: LogBus, epoch: int, next_batch: int) -> TaskPlanner:
    """A run of a task that reads `a` and `b`."""
    job = JobSpec(
        name="copy",
        inputs=(Input(topic="a", view="a"), Input(topic="b", view="b")),
        outputs=(Output(topic="out"),),
    )
    streams = (StreamId("copy", "a", 0), StreamId("copy", "b", 1))
    dead = {"a": "a.dead", "b": "b.dead"}
    layout = TaskLayout(job, TASK, Fence(1, epoch), streams, (A, B), ("out",), dead)
    newest = bus.open(TASK, layout.fence)
    start = TaskStart({A: 0, B: 0}, newest, next_batch=next_batch)
    return TaskPlanner(layout, bus, start, lambda threads: None)


def round_of(made: TaskPlanner, batch_id: int, starts: list[str], *, empty: bool = False) -> list[str]:
    """One batch over both inputs; Spark plans only those that move, and no batch when none does, but an `empty` one."""
    found = [made.latest_offset(stream, start) for stream, start in enumerate(starts)]
    for stream, (start, end) in enumerate(zip(starts, found, strict=True)):
        if end != start:
            made.plan(stream, start, end)
    if found != starts or empty:
        made.commit_write(batch_id, [], "")
    return found


@pytest.fixture
def turns(tmp_path: Path) -> Iterator[EmbeddedLog]:
    made = EmbeddedLog(tmp_path / "log", durable=False)
    for name in ("a", "b", "out"):
        made.create(name, 1)
    yield made
    made.close()


@pytest.mark.parametrize("lost", [1, 2, 3])
@pytest.mark.parametrize("kind", [LogBus, Newest])
def test_inputs_that_take_turns_go_on_after_a_lost_tail(
    turns: EmbeddedLog, kind: Callable[[EmbeddedLog], LogBus], lost: int
) -> None:
    bus = kind(turns)
    first = two_inputs(bus, 1, 0)
    stands = [[first.initial_offset(0), first.initial_offset(1)]]
    for number, topic in enumerate(["a", "b", "a"]):
        turns.append(topic, [Record(None, b"x", 0)] * 5, 0)
        stands.append(round_of(first, number, stands[-1]))
    turns.append("a", [Record(None, b"x", 0)] * 7, 0)
    turns.append("b", [Record(None, b"x", 0)] * 7, 0)
    again, at_batch = two_inputs(bus, 2, 3 - lost), 3 - lost
    here = stands[at_batch]
    while here != stands[-1]:  # the sink knows all of this: whatever else came is not mixed into it
        here = round_of(again, at_batch, here)
        assert here in stands
        at_batch += 1
    assert at_batch <= 3
    round_of(again, at_batch, here)
    assert again.positions() == {A: 17, B: 12}


@pytest.mark.parametrize("kind", [LogBus, Newest])
def test_a_batch_without_records_that_was_lost_comes_again_first(
    turns: EmbeddedLog, kind: Callable[[EmbeddedLog], LogBus]
) -> None:
    bus = kind(turns)
    first = two_inputs(bus, 1, 0)
    start = [first.initial_offset(0), first.initial_offset(1)]
    turns.append("a", [Record(None, b"x", 0)] * 5, 0)
    end = round_of(first, 0, start)
    assert round_of(first, 1, end, empty=True) == end
    turns.append("b", [Record(None, b"x", 0)] * 5, 0)
    again = two_inputs(bus, 2, 0)
    assert round_of(again, 0, start) == end
    assert round_of(again, 1, end, empty=True) == end
    round_of(again, 2, end)
    assert again.positions() == {A: 5, B: 5}


def test_a_job_whose_checkpoint_is_of_another_place_is_refused(turns: EmbeddedLog) -> None:
    bus = LogBus(turns)
    first = two_inputs(bus, 1, 0)
    turns.append("a", [Record(None, b"x", 0)] * 5, 0)
    end = round_of(first, 0, [first.initial_offset(0), first.initial_offset(1)])
    with pytest.raises(ConflictError, match="penstock reset copy"):
        two_inputs(bus, 2, 0).latest_offset(0, end[0])


# -- a sink that tells nothing of a batch's end --------------------------------------------------------------------


def letter(stream: int, offset: int) -> list[Any]:
    return [str(stream), 0, offset, 0, None, "eA==", "no number"]


def test_after_its_last_batch_a_sink_of_sparks_is_as_far_as_the_checkpoint(turns: EmbeddedLog) -> None:
    turns.create("b.dead", 1)
    bus = LogBus(turns)
    made = two_inputs(bus, 1, 0)
    planned = TaskPlanner(
        replace(made.layout, hooked=False), bus, TaskStart({A: 0, B: 0}, None), lambda threads: None
    )
    turns.append("b", [Record(None, b"x", 0)] * 5, 0)
    starts = [planned.initial_offset(0), planned.initial_offset(1)]
    ends = [planned.latest_offset(stream, start) for stream, start in enumerate(starts)]
    planned.plan(1, starts[1], ends[1])
    lines = ["12", ends[1], '{"logOffset":3}', ends[0]]
    planned.settle(lines, json.dumps([letter(1, 4), letter(1, 4), letter(1, 5)]))
    assert turns.progress("copy", ["a", "b"]) == {A: 0, B: 5}
    sources = [
        dict(r.record.headers)["penstock.source"] for r in turns.read(TopicPartition("b.dead", 0), 0, 9)
    ]
    assert sources == [b"b/0@4"]  # what lies past the committed end comes again with its own batch
    assert [planned.facts_of([ends[1]], 0).dead_letters for _ in range(2)] == [1, 0]


# -- Spark's own source ---------------------------------------------------------------------------------------------


def test_lines_of_spark_are_told_apart_by_their_topic(turns: EmbeddedLog, tmp_path: Path) -> None:
    made = two_inputs(LogBus(turns), 1, 0)
    start = TaskStart({A: 0, B: 0}, None)
    follower = AssignedPlanner(made.layout, LogBus(turns), start, lambda threads: None, tmp_path)
    offsets = tmp_path / "offsets"
    offsets.mkdir()
    (offsets / "0").write_text('v1\n{}\n12\n-\n{"logOffset":3}\n{"a":{"0":5}}')
    follower.commit_write(0, [], "")
    assert follower.positions() == {A: 5, B: 0}
    (offsets / "1").write_text('v1\n{}\n13\n{"b":{"0":7}}\n{"logOffset":4}\n{"a":{"0":5}}')
    follower.commit_write(1, [], "")
    assert follower.positions() == {A: 5, B: 7}
    held = turns.committed(str(TASK), 1)
    assert held is not None and (held.start, held.end) == ({A: 5, B: 0}, {A: 5, B: 7})
