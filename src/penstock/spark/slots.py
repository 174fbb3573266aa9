"""What a host keeps of each of its tasks from one run to the next, and how tasks share what a job has.

Knows neither topics nor how a run is made.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.core.jobs.task_lifecycle import TaskState, backoff_seconds
from penstock.core.sizing.admission import Admission
from penstock.model.ids import TaskId, TopicPartition
from penstock.model.observations import BatchSample
from penstock.model.status import JobState
from penstock.spark.session import STOP_SECONDS
from penstock.spark.task import Task

JOIN_SECONDS = 5.0
"""How much longer than it may take a drain is waited for: Spark's own stop can hang."""


class Restarts:
    """When a failed task runs again: capped exponential backoff, forgotten after a minute of batches."""

    HEALTHY_SECONDS = 60.0

    def __init__(self) -> None:
        self.failures = 0
        self.fruitless = 0
        """Starts in a row that ended without a batch."""
        self._works_since: float | None = None

    def works(self, now: float) -> None:
        """Note a batch that its run has committed."""
        self.fruitless = 0
        if self._works_since is None:
            self._works_since = now

    def passed(self) -> None:
        """Note a pass that came to its end."""
        self.fruitless = 0

    def failed(self, now: float, *, moved: bool = False) -> float:
        """Note a failure, of a run that committed a batch (`moved`) or none; seconds to wait."""
        if self._works_since is not None and now - self._works_since > self.HEALTHY_SECONDS:
            self.failures = 0
        self._works_since = None
        self.failures += 1
        self.fruitless = 0 if moved else self.fruitless + 1
        return backoff_seconds(self.failures)


@dataclass
class Slot:
    """A task's place in the container: the run that is there now, and what outlives runs."""

    id: TaskId
    partitions: tuple[TopicPartition, ...]
    rank: int
    task: Task | None = None
    threads: int = 1
    admission: Admission = field(default_factory=Admission)
    restarts: Restarts = field(default_factory=Restarts)
    restarts_total: int = 0
    retry_at: float | None = None
    ending: bool = False
    """It is drained or stopped, and starts no more."""
    told: TaskState = "running"
    """The state of its run that was last reported."""
    passes: bool = False
    """It works through what is there, pass by pass."""
    ended_before: frozenset[str] = frozenset()
    """Jobs that had ended when its newest pass began."""
    over: bool = False
    """It has worked through everything, was given up or is fenced."""
    for_good: JobState | None = None
    """How it stands for good whatever its last run was: given up (`failed`), or fenced off as it was to start again."""
    again_at: float = 0.0
    """When its next pass may begin for a backlog alone."""
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    batches: int = 0
    dead_letters: int = 0

    @property
    def state(self) -> JobState:
        if self.for_good is not None:
            return self.for_good
        if self.retry_at is not None:
            return "restarting"
        if self.task is None or self.task.state == "new":
            return "starting"
        if not self.ending and self.task.state == "failed":
            return "restarting"  # which is told at the next look
        if not self.ending and self.between:
            return "running"
        return self.task.state

    @property
    def between(self) -> bool:
        """A pass of it has ended, and another may follow."""
        return self.passes and not self.over and self.task is not None and self.task.state == "stopped"

    def begin(self, task: Task) -> None:
        """Another run is there."""
        self.task, self.retry_at, self.told = task, None, "running"

    def end(self) -> None:
        """Whatever happens to it, it does not start again."""
        self.ending, self.retry_at = True, None

    def give_up(self) -> None:
        """It was to work through what is there, and cannot."""
        self._leave("failed")

    def fence_off(self) -> None:
        """Another run of it writes now."""
        self._leave("fenced")

    def _leave(self, state: JobState) -> None:
        self.end()
        self.over, self.for_good = True, state

    def note(self, sample: BatchSample, ends: Mapping[TopicPartition, int], now: float) -> None:
        """A batch of it was committed, perhaps of an earlier run."""
        self.committed.update(ends)
        self.batches += 1
        self.dead_letters += sample.dead_letters
        run = None if self.task is None else self.task.planner.layout.fence
        if self.retry_at is None and run is not None and run.epoch == sample.epoch:
            self.restarts.works(now)


def drain_tasks(tasks: Sequence[Task], timeout_seconds: float) -> bool:
    """Bring tasks to a clean batch edge side by side; False when one has a batch that is not finished."""
    for task in tasks:
        task.freeze()
    threads = [threading.Thread(target=task.drain, args=(timeout_seconds,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout_seconds + JOIN_SECONDS)
    stop_tasks([task for task in tasks if task.state == "draining"])
    return all(task.ended_clean() for task in tasks)


def stop_tasks(tasks: Sequence[Task]) -> None:
    """Stop tasks side by side, and wait no longer than it may take: one that hangs or raises holds up no other."""
    threads = [threading.Thread(target=_stop, args=(task,), daemon=True) for task in tasks]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + STOP_SECONDS + JOIN_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def _stop(task: Task) -> None:
    with suppress(Exception):  # it is stopped as far as it goes, and the JVM may be gone
        task.stop()


def share_evenly(threads: int, tasks: int) -> list[int]:
    """Threads of each task: as even as they go, at least one each."""
    whole, rest = divmod(max(threads, tasks), tasks)
    return [whole + (1 if i < rest else 0) for i in range(tasks)]


def staggered(interval_seconds: float, rank: int) -> float:
    """A trigger interval that differs a little from other tasks' (up to 5%), so that they don't fire together."""
    return interval_seconds * (1.0 + 0.001 * (rank % 51))
