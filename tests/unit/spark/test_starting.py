"""How a run of a task is made, over a real log and without Spark: where it begins, and what it leaves when it cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.model.errors import MissingError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.jobs import Input, JobOptions, JobSpec, Output
from penstock.model.records import CommittedBatch, Record
from penstock.model.topics import TopicSpec
from penstock.spark.bus import LogBus
from penstock.spark.frames import JobCode
from penstock.spark.hub import PlannerHub
from penstock.spark.slots import Slot
from penstock.spark.starting import HostedJob, make_task

PLACES = (TopicPartition("in", 0), TopicPartition("in", 1))


class Opened(LogBus):
    """Which runs are open."""

    def __init__(self, log: EmbeddedLog) -> None:
        super().__init__(log)
        self.runs: set[tuple[str, Fence]] = set()

    def open(
        self, task: TaskId, fence: Fence, places: Sequence[TopicPartition] = ()
    ) -> CommittedBatch | None:
        newest = super().open(task, fence, places)
        self.runs.add((str(task), fence))
        return newest

    def close(self, task: TaskId, fence: Fence) -> None:
        self.runs.discard((str(task), fence))


@pytest.fixture
def bus(tmp_path: Path) -> Iterator[Opened]:
    log = EmbeddedLog(tmp_path / "log", durable=False)
    log.create("in", 2)
    log.create("out", 1)
    yield Opened(log)
    log.close()


def hosted(bus: LogBus) -> HostedJob:
    topics = {name: TopicSpec(name=name, columns="n long") for name in ("in", "out")}
    spec = JobSpec(
        name="copy",
        inputs=(Input(topic="in", view="in"),),
        outputs=(Output(topic="out"),),
        options=JobOptions(),
    )
    session: Any = None
    code = JobCode(spec, topics, None, None, folder="")
    return HostedJob(code, bus, [Slot(TaskId("copy", 0), PLACES, 0)], session, available_now=False)


def test_a_run_that_cannot_be_made_leaves_nothing_open(bus: Opened, tmp_path: Path) -> None:
    bus.topics.append("in", [Record(None, b"x", 0)] * 5, 0)
    bus.topics.commit_progress("copy", {PLACES[0]: 2})
    bus.topics.begin_offsets = lambda topics: dict.fromkeys(PLACES, 4)  # type: ignore[method-assign]
    job = hosted(bus)
    with pytest.raises(MissingError, match="gone unread"):
        make_task(job, job.slots[0], PlannerHub(), tmp_path / "checkpoints", {})
    assert bus.runs == set()


def test_a_run_begins_above_what_its_sink_knows_when_the_work_folder_is_gone(
    bus: Opened, tmp_path: Path
) -> None:
    bus.topics.append("in", [Record(None, b"x", 0)] * 5, 0)
    job = hosted(bus)
    for folder in ("first", "second"):
        task = make_task(job, job.slots[0], PlannerHub(), tmp_path / folder, {})
        start = task.planner.initial_offset(0)
        end = task.planner.latest_offset(0, start)
        if end != start:
            task.planner.plan(0, start, end)
            task.planner.commit_write(0, [], "")
    assert task.planner.layout.fence == Fence(2, 1)
    assert task.planner.positions() == {PLACES[0]: 5, PLACES[1]: 0}
