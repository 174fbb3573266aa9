"""What a task decides for its query, over a real log in memory's place: no Spark session."""

from __future__ import annotations

import json
import math
import uuid
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.jobs import Input, JobOptions, JobSpec, Output
from penstock.model.records import CommittedBatch, Record
from penstock.spark.bus import LogBus
from penstock.spark.offsets import StreamId, load_offsets
from penstock.spark.planner import Drained, TaskLayout, TaskPlanner, TaskStart

TASK, FENCE = TaskId("copy", 0), Fence(1, 1)
PLACES = (TopicPartition("in", 0), TopicPartition("in", 1))


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    made = EmbeddedLog(tmp_path / "log", durable=False)
    made.create("in", 2)
    made.create("out", 1)
    yield made
    made.close()


def put(log: EmbeddedLog, *counts: int) -> None:
    for place, count in zip(PLACES, counts, strict=True):
        log.append(place.topic, [Record(None, b"x", 0)] * count, place.partition)


def at(*offsets: int) -> dict[TopicPartition, int]:
    return dict(zip(PLACES, offsets, strict=True))


class Plain(LogBus):
    """A bus that keeps no batches, as plain Kafka: only how far the job has come."""

    keeps_batches = False

    def open(self, *_: Any, **__: Any) -> None:
        return None

    def committed(self, task: TaskId, batch_id: int) -> None:
        return None


class Discarding(LogBus):
    """Deletes whatever it is asked to: the planner must know what it asks for."""

    def discard(self, messages: Sequence[str]) -> None:
        for message in messages:
            (self._root / json.loads(message)["file"]).unlink()


def planner(
    log: EmbeddedLog,
    *,
    reads: int = 1,
    fence: Fence = FENCE,
    initial: Mapping[TopicPartition, int] | None = None,
    bus: Callable[[EmbeddedLog], LogBus] = LogBus,
    **options: Any,
) -> TaskPlanner:
    """A run of the task that reads "in" so many times."""
    job = JobSpec(
        name="copy",
        inputs=tuple(Input(topic="in", view="in") for _ in range(reads)),
        outputs=(Output(topic="out"),),
        options=JobOptions(**options),
    )
    streams = tuple(StreamId("copy", "in", i) for i in range(reads))
    layout = TaskLayout(job, TASK, fence, streams, PLACES, ("out",), {"in": "in.dead"})
    held = bus(log)
    newest = held.open(TASK, fence)
    return TaskPlanner(layout, held, TaskStart(initial or at(0, 0), newest), lambda threads: None)


def batch(planner: TaskPlanner, batch_id: int, start: str, messages: Sequence[str] = ()) -> str:
    """One batch of a job with one read, as Spark asks for it; where it ends."""
    end = planner.latest_offset(0, start)
    planner.plan(0, start, end)
    planner.commit_write(batch_id, list(messages), "")
    return end


def ends(planner: TaskPlanner, text: str, stream: int = 0) -> list[int]:
    return list(load_offsets(planner.layout.streams[stream], text).values())


# -- where a run begins --------------------------------------------------------------------------------------------


def test_a_new_task_has_its_generations_first_offsets_as_position(log: EmbeddedLog) -> None:
    assert planner(log, initial=at(2, 3)).positions() == at(2, 3)


@pytest.mark.parametrize("bus", [LogBus, Plain])
def test_a_second_run_stands_where_the_first_one_committed(
    log: EmbeddedLog, bus: Callable[[EmbeddedLog], LogBus]
) -> None:
    put(log, 7, 4)
    first = planner(log, bus=bus)
    batch(first, 0, first.initial_offset(0))
    again = planner(log, bus=bus, fence=Fence(1, 2))
    assert again.positions() == at(7, 4)
    assert ends(again, again.initial_offset(0)) == [0, 0]  # which Spark may ask for again


def test_a_position_is_never_before_the_generations_first_offsets(log: EmbeddedLog) -> None:
    log.commit_progress("copy", at(1, 6))
    assert planner(log, initial=at(2, 3)).positions() == at(2, 6)


def test_a_batch_of_an_older_generation_does_not_say_where_this_one_stands(log: EmbeddedLog) -> None:
    old = CommittedBatch("copy-0", Fence(1, 1), 5, at(0, 0), {PLACES[0]: 9})
    made = planner(log, fence=Fence(2, 1), initial=at(4, 4))
    again = TaskPlanner(made.layout, LogBus(log), TaskStart(at(4, 4), old), lambda threads: None)
    assert again.positions() == at(4, 4)


@pytest.mark.parametrize(("records", "expected"), [(None, 900), (25, 25), (7, 7)])
def test_a_limit_in_bytes_alone_bounds_a_batch(log: EmbeddedLog, records: int | None, expected: int) -> None:
    put(log, 600, 300)
    most = None if records is None else math.ceil(records * LogBus(log).record_bytes("in"))
    made = planner(log, max_bytes_per_batch=most)
    assert sum(ends(made, batch(made, 0, made.initial_offset(0)))) == expected


# -- what a batch reads --------------------------------------------------------------------------------------------


def test_two_plans_of_one_batch_are_one_plan(log: EmbeddedLog) -> None:
    put(log, 6, 6)
    made = planner(log)
    made.threads = 3
    start = made.initial_offset(0)
    end = made.latest_offset(0, start)
    first = made.plan(0, start, end)
    made.threads = 5  # changed between the two branches of a job with two outputs
    assert made.plan(0, start, end) == first
    assert len(json.loads(first)) == 3
    made.commit_write(0, [], "")
    put(log, 6, 6)
    assert len(json.loads(made.plan(0, end, made.latest_offset(0, end)))) == 5


def test_all_reads_of_a_topic_in_a_batch_get_one_end(log: EmbeddedLog) -> None:
    made = planner(log, reads=2)
    starts = [made.initial_offset(stream) for stream in (0, 1)]
    for arrived in (3, 6, 9):
        put(log, 3, 3)
        first = made.latest_offset(0, starts[0])
        put(log, 0, 2)  # between the two questions
        second = made.latest_offset(1, starts[1])
        assert ends(made, first) == ends(made, second, 1)
        assert ends(made, first)[0] == arrived
        starts = [first, second]


def test_a_read_that_asks_again_sees_what_came_since(log: EmbeddedLog) -> None:
    made = planner(log)
    start = made.initial_offset(0)
    assert ends(made, made.latest_offset(0, start)) == [0, 0]
    put(log, 1, 2)
    assert ends(made, made.latest_offset(0, start)) == [1, 2]


def test_a_frozen_planner_makes_no_batch_but_lets_a_known_one_be_planned(log: EmbeddedLog) -> None:
    put(log, 2, 2)
    made = planner(log)
    start = made.initial_offset(0)
    end = made.latest_offset(0, start)
    made.frozen = True
    assert made.plan(0, start, end)
    with pytest.raises(Drained):
        made.latest_offset(0, end)


# -- what a batch writes -------------------------------------------------------------------------------------------


def segment(log: EmbeddedLog, records: int) -> tuple[Path, str]:
    """What one Spark partition wrote: its file, and what it says of it."""
    name = f"segments/copy-0-{uuid.uuid4()}.arrow"
    file = log.folder / name
    file.write_bytes(b"x" * 10)
    chunk = [0, 0, 0, 10, zlib.crc32(b"x" * 10), records, 4, 0]
    return file, json.dumps({"file": name, "chunks": [chunk]})


def written(log: EmbeddedLog) -> int:
    return log.end_offsets(["out"])[TopicPartition("out", 0)]


def test_an_abort_after_the_commit_landed_deletes_nothing(log: EmbeddedLog) -> None:
    put(log, 2, 2)
    made, (file, message) = planner(log, bus=Discarding), segment(log, 4)
    batch(made, 0, made.initial_offset(0), [message])
    made.abort_write(0, [message])
    assert file.exists() and written(log) == 4


def test_an_abort_of_what_was_not_committed_deletes_it(log: EmbeddedLog) -> None:
    made, (file, message) = planner(log), segment(log, 4)
    made.abort_write(0, [message])
    assert not file.exists()


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_replay_is_known_whatever_its_number_of_messages(log: EmbeddedLog, parts: int) -> None:
    put(log, 4, 4)
    first = planner(log)
    start = first.initial_offset(0)
    end = batch(first, 0, start, [segment(log, 4)[1] for _ in range(2)])
    again = planner(log, fence=Fence(1, 2))
    again.plan(0, start, end)
    again.commit_write(0, [segment(log, 1)[1] for _ in range(parts)], "")
    assert written(log) == 8
    assert again.facts_of([end], 0).records_in == {"in": 8}


def test_a_lost_checkpoint_tail_is_planned_as_it_was_committed(log: EmbeddedLog) -> None:
    put(log, 5, 5)
    first = planner(log, max_records_per_batch=4)
    starts = [first.initial_offset(0)]
    for number in range(2):
        starts.append(batch(first, number, starts[-1]))
    put(log, 5, 5)
    again = planner(log, fence=Fence(1, 2))  # with no limit now
    for number in range(2):
        assert batch(again, number, starts[number]) == starts[number + 1]
    assert ends(again, again.latest_offset(0, starts[2])) == [10, 10]
