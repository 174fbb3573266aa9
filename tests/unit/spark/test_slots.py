"""What a host keeps of a task between its runs: when it starts again, and how threads and triggers are shared."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.core.jobs.task_lifecycle import TaskState
from penstock.model.ids import TaskId, TopicPartition
from penstock.model.observations import BatchSample
from penstock.spark.slots import Restarts, Slot, drain_tasks, share_evenly, staggered, stop_tasks
from penstock.spark.task import Task, TaskPlace


def test_a_pause_is_no_health() -> None:
    restarts, now, pauses = Restarts(), 1000.0, list[float]()
    for _ in range(9):
        pauses.append(restarts.failed(now))
        now += pauses[-1] + 0.5  # it runs again and fails at once
    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_a_run_that_commits_for_less_than_a_minute_is_not_healthy_yet() -> None:
    restarts = Restarts()
    restarts.failed(0.0)
    restarts.works(100.0)
    restarts.works(155.0)
    assert restarts.failed(159.0) == 2.0


def test_a_minute_of_batches_forgets_what_was_before() -> None:
    restarts = Restarts()
    for _ in range(5):
        restarts.failed(0.0)
    restarts.works(100.0)
    assert restarts.failed(161.0) == 1.0
    assert restarts.failed(163.0) == 2.0


def test_a_run_that_committed_a_batch_is_no_fruitless_start() -> None:
    restarts = Restarts()
    counts: list[int] = []
    for moved in (True, False, False, True, False):
        restarts.failed(0.0, moved=moved)
        counts.append(restarts.fruitless)
    assert counts == [0, 1, 2, 0, 1]


def test_starts_are_counted_in_a_row_only_while_nothing_is_done_between_them() -> None:
    restarts = Restarts()
    for _ in range(2):
        restarts.failed(0.0)
    restarts.passed()
    restarts.failed(1.0)
    assert restarts.fruitless == 1
    restarts.works(2.0)
    restarts.failed(3.0)
    assert restarts.fruitless == 1


def run(epoch: int, state: TaskState = "running") -> Any:
    """A run of a task as its slot sees it."""
    fence = SimpleNamespace(epoch=epoch)
    return SimpleNamespace(planner=SimpleNamespace(layout=SimpleNamespace(fence=fence)), state=state)


def test_a_late_batch_of_an_earlier_run_counts_but_is_no_health_of_the_next() -> None:
    place = TopicPartition("in", 0)
    slot = Slot(TaskId("copy", 0), (place,), 0)
    slot.restarts.failed(0.0)
    slot.begin(run(epoch=2))
    late = cast("BatchSample", SimpleNamespace(epoch=1, dead_letters=3))
    slot.note(late, {place: 5}, 1.0)
    assert (slot.batches, slot.dead_letters, slot.committed) == (1, 3, {place: 5})
    assert slot.restarts.failed(100.0) == 2.0


def test_a_slot_that_ends_does_not_wait_for_its_next_run() -> None:
    slot = Slot(TaskId("copy", 0), (), 0)
    assert slot.state == "starting"
    slot.begin(run(epoch=1, state="failed"))
    slot.retry_at = 5.0
    assert slot.state == "restarting"
    slot.end()
    assert (slot.state, slot.retry_at, slot.ending) == ("failed", None, True)


def test_between_two_passes_a_slot_runs_until_it_is_over_or_ends() -> None:
    slot = Slot(TaskId("copy", 0), (), 0, passes=True)
    slot.begin(run(epoch=1, state="stopped"))
    assert slot.between and slot.state == "running"
    slot.over = True
    assert not slot.between and slot.state == "stopped"
    slot.over = False
    slot.end()
    assert slot.state == "stopped"


def test_a_failure_that_nobody_noticed_yet_is_not_the_end() -> None:
    slot = Slot(TaskId("copy", 0), (), 0)
    slot.begin(run(epoch=1, state="failed"))
    assert slot.state == "restarting"
    slot.give_up()
    assert (slot.state, slot.over) == ("failed", True)


def test_a_job_that_is_given_up_after_a_clean_pass_has_failed() -> None:
    slot = Slot(TaskId("copy", 0), (), 0, passes=True)
    slot.begin(run(epoch=1, state="stopped"))
    slot.give_up()
    assert (slot.state, slot.over, slot.ending) == ("failed", True, True)


def test_a_task_that_is_fenced_off_as_it_starts_stays_fenced() -> None:
    slot = Slot(TaskId("copy", 0), (), 0)
    slot.begin(run(epoch=1, state="failed"))
    slot.retry_at = 5.0
    slot.fence_off()
    assert (slot.state, slot.retry_at, slot.over) == ("fenced", None, True)


class Run:
    """A run that ends as it is told."""

    def __init__(self, end: TaskState, at_edge: bool = True) -> None:
        self.state: TaskState = "running"
        self._end: TaskState = end
        self._at_edge = at_edge

    def freeze(self) -> None:
        self.state = "draining"

    def drain(self, timeout_seconds: float) -> None:
        self.state = self._end

    def stop(self) -> None:
        self.state = "stopped"

    def ended_clean(self) -> bool:
        return self.state in ("drained", "stopped") and self._at_edge


@pytest.mark.parametrize(
    ("other", "clean"),
    [
        (Run("drained"), True),
        (Run("stopped"), True),  # it had come to its end by itself
        (Run("stopped", at_edge=False), False),
        (Run("draining", at_edge=False), False),  # it took too long
        (Run("failed"), False),
        (Run("fenced"), False),
    ],
)
def test_a_drain_is_clean_when_every_task_ended_at_an_edge(other: Run, clean: bool) -> None:
    assert drain_tasks(cast("list[Task]", [Run("drained"), other]), 1.0) is clean
    assert other.state != "draining"


# -- a run's stop --------------------------------------------------------------------------------------------------


class Query:
    """A query whose stop takes until it is let go."""

    def __init__(self) -> None:
        self.isActive, self.stopping, self.go = True, threading.Event(), threading.Event()

    def stop(self) -> None:
        self.isActive = False
        self.stopping.set()
        assert self.go.wait(10.0)

    def exception(self) -> BaseException:
        return RuntimeError("it was interrupted")


class Planner:
    """A planner in the middle of a commit."""

    def __init__(self) -> None:
        self.layout = SimpleNamespace(task=TaskId("copy", 0), run="copy-0@1.1", fence=None, hooked=True)
        self.error: BaseException | None = None
        self.frozen = False
        self.committed = threading.Event()

    def wait_for_commit(self) -> None:
        assert self.committed.wait(10.0)


def task_with(planner: Planner, close: Callable[..., None]) -> Task:
    hub = SimpleNamespace(forget=lambda run: None)
    place = TaskPlace(cast("Any", hub), cast("Any", None), Path("nowhere"), 1.0)
    return Task(cast("Any", None), cast("Any", SimpleNamespace(close=close)), cast("Any", planner), place)


def test_nobody_sees_a_run_between_its_query_and_its_own_end() -> None:
    planner, query = Planner(), Query()
    planner.committed.set()
    task = task_with(planner, lambda *_: None)
    task.state, task._query = "running", cast("Any", query)
    stopping = threading.Thread(target=task.stop)
    stopping.start()
    assert query.stopping.wait(10.0)
    looking = threading.Thread(target=task.look)
    looking.start()
    looking.join(0.05)
    assert looking.is_alive()
    query.go.set()
    stopping.join(10.0)
    looking.join(10.0)
    assert (task.state, task.failure) == ("stopped", None)


def test_a_run_that_ends_as_it_is_frozen_stays_as_it_ended() -> None:
    planner, query = Planner(), Query()
    planner.committed.set()
    asked, go = threading.Event(), threading.Event()

    def exception() -> BaseException:
        asked.set()
        assert go.wait(10.0)
        return RuntimeError("a disk is full")

    query.isActive, query.exception = False, exception
    task = task_with(planner, lambda *_: None)
    task.code = cast("Any", SimpleNamespace(folder=""))
    task.state, task._query = "running", cast("Any", query)
    threads = [threading.Thread(target=task.look), threading.Thread(target=task.freeze)]
    threads[0].start()
    assert asked.wait(10.0)
    threads[1].start()
    threads[1].join(0.05)
    assert (task.state, planner.frozen) == ("running", False), "it waits until it is seen how the run stands"
    go.set()
    for thread in threads:
        thread.join(10.0)
    assert (task.state, planner.frozen) == ("failed", False)


def test_a_query_whose_stop_takes_too_long_has_left_its_batch(tmp_path: Path) -> None:
    planner, query = Planner(), Query()
    planner.committed.set()

    def stop() -> None:
        query.isActive = False
        raise TimeoutError("Stream Execution thread failed to stop within 20000 milliseconds")

    query.stop = stop
    task = task_with(planner, lambda *_: None)
    task._place = replace(task._place, checkpoint=tmp_path)
    task.state, task._query = "running", cast("Any", query)
    assert task.at_edge()
    task.stop()
    assert (task.state, task.ended_clean(), task.stopped_inside()) == ("stopped", False, True)


def test_a_task_that_cannot_be_stopped_holds_up_no_other() -> None:
    class Deaf(Run):
        def stop(self) -> None:
            raise RuntimeError("the JVM is gone")

    tasks = [Deaf("draining"), Run("draining")]
    stop_tasks(cast("list[Task]", tasks))
    assert [task.state for task in tasks] == ["running", "stopped"]


def test_a_commit_in_flight_ends_before_the_bus_is_closed_for_its_run() -> None:
    planner = Planner()
    order: list[str] = []
    task = task_with(planner, lambda *_: order.append("closed"))
    stopping = threading.Thread(target=task.stop)
    stopping.start()
    stopping.join(0.05)
    assert order == []
    order.append("committed")
    planner.committed.set()
    stopping.join(10.0)
    assert order == ["committed", "closed"]


# -- shares --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("threads", "tasks", "shares"),
    [(1, 1, [1]), (8, 3, [3, 3, 2]), (6, 3, [2, 2, 2]), (2, 4, [1, 1, 1, 1]), (0, 2, [1, 1])],
)
def test_threads_are_shared_as_evenly_as_they_go_and_each_task_has_one(
    threads: int, tasks: int, shares: list[int]
) -> None:
    assert share_evenly(threads, tasks) == shares


def test_triggers_differ_a_little_and_never_by_more_than_a_twentieth() -> None:
    intervals = [staggered(2.0, rank) for rank in range(51)]
    assert len(set(intervals)) == 51
    assert intervals[0] == 2.0 and max(intervals) <= 2.0 * 1.05
    assert staggered(2.0, 51) == 2.0
