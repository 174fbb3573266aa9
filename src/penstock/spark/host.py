"""A container's task manager: all tasks of a pipeline in one Spark application, kept running.

Rules: a failed task runs again after a growing pause and never takes another with it, but one that was to work through
what is there is given up when its starts bear no fruit; triggers are staggered, since equal intervals fire together; a
job's threads are shared by its tasks as evenly as they go. Topics and Spark are asked outside the lock, so that one that
does not answer holds up neither status nor changes. Measures through the probe, and lets what was measured bound the
next batch. Decides nothing about sizes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.core.jobs.passes import FRUITLESS_STARTS, begins_again, is_hopeless, was_last
from penstock.core.jobs.task_lifecycle import TaskState
from penstock.core.sizing.admission import observe_batch
from penstock.model.errors import EnvironmentProblem, FencedError, MissingError, PenstockError
from penstock.model.ids import TaskId, TopicPartition
from penstock.model.observations import BatchSample, PartitionSample
from penstock.model.status import JobState, RunEvent
from penstock.ports.measurements import Measured
from penstock.spark.bus import Bus
from penstock.spark.executors import Executors
from penstock.spark.failures import with_full_stop
from penstock.spark.frames import JobCode, analyse
from penstock.spark.hub import PlannerHub
from penstock.spark.planner import TaskPlanner
from penstock.spark.probe import Probe
from penstock.spark.reach import CHECK_SECONDS, misplaced_log, misplaced_state
from penstock.spark.session import jvm, trouble_of
from penstock.spark.slots import JOIN_SECONDS, Slot, drain_tasks, share_evenly, stop_tasks
from penstock.spark.starting import (
    HostedJob,
    check_tasks,
    feeders_of,
    make_task,
    partitions_of_task,
    prepare_topics,
)
from penstock.spark.stateful import keeps_state
from penstock.spark.task import Task

RUNS_KEPT = 3
"""Runs of a task whose late measurements are still understood."""


class Host:
    """Runs jobs; `tick` it now and then, `collect` what it measured, change `threads` at will."""

    def __init__(
        self, session: SparkSession, checkpoints: Path, executors: Executors, name: str = "container-0"
    ) -> None:
        self._session, self._checkpoints, self._executors = session, checkpoints, executors
        self.name = name
        self.hub = PlannerHub()
        jvm(session).penstock.Planners.set(self.hub)
        self._probe = Probe(jvm(session))
        self._jobs: dict[str, HostedJob] = {}
        self._notices: list[tuple[str, str, str]] = []
        self._runs: dict[str, TaskPlanner] = {}
        """Planners by run, ended ones too: a batch's measurements may come after its end."""
        self._first_ends: dict[str, dict[TopicPartition, int]] = {}
        """Where topics ended when the first job that works through them came."""
        self._misplaced, self._reach_at = "", 0.0
        self._warned: set[str] = set()
        self._lock = threading.RLock()
        """Held for moments only: never while topics or Spark are asked."""
        self._starts = threading.Lock()
        """Held while a task is started."""

    # -- jobs ------------------------------------------------------------------------------------------------------

    def add(
        self, code: JobCode, bus: Bus, *, available_now: bool = False, threads: int | None = None
    ) -> None:
        """Place a job here and start its tasks, with the threads it declares or other ones; what it needs of topics is
        made."""
        if why := misplaced_log(self._executors.elsewhere() if bus.one_host else []):
            raise EnvironmentProblem(why)
        name, count = code.spec.name, code.spec.options.tasks
        bus = bus.prepare(self._session, code.spec)
        prepare_topics(code, bus)
        session = self._session.newSession()
        session.conf.set("spark.sql.shuffle.partitions", str(code.spec.options.state_partitions))
        shares = share_evenly(code.spec.options.threads if threads is None else threads, count)
        parts = [partitions_of_task(code, bus, i, count) for i in range(count)]
        if available_now:
            for topic in [t for t in code.spec.input_topics if t not in self._first_ends]:
                self._first_ends[topic] = bus.topics.end_offsets([topic])
        first_rank = sum(len(job.slots) for job in self._jobs.values())
        slots = [
            Slot(TaskId(name, i), parts[i], first_rank + i, threads=shares[i], passes=available_now)
            for i in range(count)
        ]
        job = HostedJob(code, bus, slots, session, available_now)
        check_tasks(job, self._checkpoints)
        with self._lock:
            self._notices += [("notice", name, bus.notice)] if bus.notice else []
            self._jobs[name] = job
        for slot in slots:
            self._start(job, slot)

    # -- tasks -----------------------------------------------------------------------------------------------------

    def _start(self, job: HostedJob, slot: Slot, *, frozen: bool = False) -> None:
        with self._starts:
            with self._lock:
                ended, until = self._ended(), self._until(job)
            task = make_task(job, slot, self.hub, self._checkpoints, until)
            if slot.ending and not frozen:
                task.close()
                return
            with self._lock:
                self._keep(task.planner)
                slot.committed, slot.ended_before = task.planner.positions(), ended
                task.set_threads(slot.threads)
            task.start(frozen=frozen)
            with self._lock:
                task.set_threads(slot.threads)  # they may have changed meanwhile
                slot.begin(task)

    def _ended(self) -> frozenset[str]:
        """Jobs that write nothing more."""
        return frozenset(name for name, job in self._jobs.items() if all(slot.over for slot in job.slots))

    def _until(self, job: HostedJob) -> dict[TopicPartition, int]:
        """Where the sources of a job that works through what is there end for it: what jobs here write has no such end."""
        written = frozenset[str]().union(*(other.writes for other in self._jobs.values()))
        topics = (job.reads - written) & self._first_ends.keys() if job.available_now else ()
        return {place: at for topic in topics for place, at in self._first_ends[topic].items()}

    def _keep(self, planner: TaskPlanner) -> None:
        layout = planner.layout
        self._runs[layout.run] = planner
        runs = [run for run, kept in self._runs.items() if kept.layout.task == layout.task]
        for old in runs[:-RUNS_KEPT]:
            del self._runs[old]

    def tick(self, now: float) -> list[RunEvent]:
        """Notice ended tasks and start those whose pause is over; what happened."""
        self._executors.settle()
        self._check_reach(now)
        with self._lock:
            events = [RunEvent(now, kind, text, name) for kind, name, text in self._notices]
            self._notices.clear()
            held = [(job, slot) for job in self._jobs.values() for slot in job.slots]
        for job, slot in held:
            if slot.task is not None and slot.retry_at is None:
                state = slot.task.look()  # waits for a commit in flight
                with self._lock:
                    events += self._notice(job, slot, slot.task, state, now)
            with self._lock:
                due, passes = slot.retry_at is not None and now >= slot.retry_at, self._passes(job, slot, now)
            if due or passes:
                events += self._start_again(job, slot, now, told=due)
        return events

    def _check_reach(self, now: float) -> None:
        """Executors may come on hosts that do not see the files of this one."""
        if now < self._reach_at:
            return
        self._reach_at = now + CHECK_SECONDS
        hosts = self._executors.elsewhere()
        with self._lock:
            jobs = list(self._jobs.values())
        if hosts and any(job.bus.one_host for job in jobs):
            self._misplaced = misplaced_log(hosts)
            return
        for job in jobs if hosts else ():
            if job.name in self._warned:
                continue
            self._warned.add(job.name)
            if keeps_state(analyse(job.session, job.code)):
                text = misplaced_state(job.name, self._checkpoints, hosts)
                with self._lock:
                    self._notices.append(("alert", job.name, text))

    def _notice(self, job: HostedJob, slot: Slot, task: Task, state: TaskState, now: float) -> list[RunEvent]:
        """Whoever saw the run end first, its end is told once."""
        if state == slot.told:
            return []
        slot.told = state
        if state == "stopped":
            slot.restarts.passed()
            slot.over = slot.passes and was_last(feeders_of(job, self._jobs), slot.ended_before)
            slot.again_at = now + job.code.spec.options.interval_seconds
        if state not in ("failed", "fenced"):
            return []
        assert task.failure is not None
        slot.over = state == "fenced"
        text = f"{slot.id} {state}: {task.failure.sentence}"
        failed = RunEvent(now, state, text, job.name, details=task.failure.whole)
        return [failed, *(self._retry(job, slot, now, task.moved()) if state == "failed" else [])]

    def _retry(self, job: HostedJob, slot: Slot, now: float, moved: bool) -> list[RunEvent]:
        """A failed start is followed by another, unless there is no hope or all ends."""
        if slot.ending:
            return []
        pause = slot.restarts.failed(now, moved=moved)
        if slot.passes and is_hopeless(slot.restarts.fruitless):
            slot.give_up()
            text = f"{slot.id} is given up: {FRUITLESS_STARTS} starts in a row committed no batch."
            return [RunEvent(now, "given_up", text, job.name)]
        slot.retry_at = now + pause
        return [RunEvent(now, "retry", f"{slot.id} starts again in {pause:.0f} s.", job.name)]

    def _passes(self, job: HostedJob, slot: Slot, now: float) -> bool:
        """Whether a job that works through what is there has to look again now."""
        if not slot.between or slot.ending or slot.told != "stopped":
            return False
        backlog = sum(max(0, job.ends.get(p, 0) - slot.committed.get(p, 0)) for p in slot.partitions)
        feeders = feeders_of(job, self._jobs)
        return begins_again(feeders, self._ended(), backlog, rested=now >= slot.again_at)

    def _start_again(self, job: HostedJob, slot: Slot, now: float, *, told: bool) -> list[RunEvent]:
        slot.restarts_total += 1 if told else 0
        try:
            self._start(job, slot)
        except FencedError as error:  # each further try would raise its own epoch, and overtake the newer run
            with self._lock:
                slot.fence_off()
            return [RunEvent(now, "fenced", f"{slot.id} fenced: {with_full_stop(str(error))}", job.name)]
        except Exception as error:  # noqa: BLE001  whatever the owner's code or Spark raises: it is tried again
            reason = str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
            text = f"{slot.id} did not start: {with_full_stop(reason.splitlines()[0])}"
            with self._lock:
                more = self._retry(job, slot, now, moved=False)
            return [RunEvent(now, "failed", text, job.name, details=reason), *more]
        return [RunEvent(now, "restarted", f"{slot.id} runs again.", job.name)] if told else []

    # -- measurements and changes ----------------------------------------------------------------------------------

    def collect(self, now: float) -> Measured:
        """All batches since the last call, each partition as each job sees it, the container's memory."""
        with self._lock:
            jobs = list(self._jobs.values())
        found = self._probe.batches(self._runs)
        ask_ends(jobs)
        container = self._probe.container(self.name, now, self.slots())
        with self._lock:
            for sample, ends in found:
                self._note(sample, ends, now)
            partitions = [p for job in jobs for p in positions_of(job, now)]
            return Measured(tuple(sample for sample, _ in found), tuple(partitions), container)

    def _note(self, sample: BatchSample, ends: Mapping[TopicPartition, int], now: float) -> None:
        job = self._jobs.get(sample.task.job)
        if job is None:
            return
        slot = job.slots[sample.task.index]
        slot.note(sample, ends, now)
        options = job.code.spec.options
        slot.admission = observe_batch(
            slot.admission, sample, options.interval_seconds, options.slo_lag_seconds
        )

    def threads(self) -> dict[str, int]:
        with self._lock:
            return {name: sum(slot.threads for slot in job.slots) for name, job in self._jobs.items()}

    def set_threads(self, job: str, threads: int) -> None:
        """Shares them over the job's tasks; each takes its share at its next batch."""
        with self._lock:
            slots = self._jobs[job].slots
            for slot, share in zip(slots, share_evenly(max(threads, len(slots)), len(slots)), strict=True):
                slot.threads = share
                if slot.task is not None:
                    slot.task.set_threads(share)

    def slots(self) -> int:
        return self._executors.slots()

    def executors(self) -> int:
        return self._executors.count()

    def set_executors(self, executors: int) -> None:
        self._executors.request(executors)

    def state(self, job: str) -> JobState:
        """The job's state: that of its task in most trouble."""
        with self._lock:
            states = [slot.state for slot in self._jobs[job].slots]
        order: Sequence[JobState] = (
            "fenced", "failed", "restarting", "starting", "draining", "running", "drained", "stopped",
        )  # fmt: skip
        return min(states, key=order.index)

    def counts(self, job: str) -> tuple[int, int, int]:
        """(batches, dead letters, restarts) since the start."""
        with self._lock:
            slots = self._jobs[job].slots
            return (
                sum(s.batches for s in slots),
                sum(s.dead_letters for s in slots),
                sum(s.restarts_total for s in slots),
            )

    def tasks(self, job: str) -> list[Task]:
        """The runs of a job that are here now."""
        with self._lock:
            return [slot.task for slot in self._jobs[job].slots if slot.task is not None]

    # -- the end ---------------------------------------------------------------------------------------------------

    def drain(self, timeout_seconds: float, jobs: Sequence[str] | None = None) -> bool:
        """Bring tasks to a clean batch edge side by side; False when one has left a batch that its next run does again:
        it failed, or had to be stopped in the middle and could not finish in time.
        """
        deadline = time.monotonic() + timeout_seconds
        with self._lock:
            held = [job for name, job in self._jobs.items() if jobs is None or name in jobs]
            slots = [(job, slot) for job in held for slot in job.slots]
            for _, slot in slots:
                slot.end()
        self._wait_for_start(timeout_seconds)
        clean = drain_tasks([slot.task for _, slot in slots if slot.task is not None], timeout_seconds)
        for job, slot in slots:
            if slot.task is not None and slot.task.stopped_inside() and time.monotonic() < deadline:
                with suppress(Exception):  # then it is left as it is
                    self._start(job, slot, frozen=True)
        again = [slot.task for _, slot in slots if slot.task is not None and slot.task.state == "draining"]
        if again:
            drain_tasks(again, deadline - time.monotonic())
            clean = all(slot.task.ended_clean() for _, slot in slots if slot.task is not None)
        return clean

    def _wait_for_start(self, timeout_seconds: float) -> None:
        """Until a start that was under way has come to its end: one that comes later sees that all ends."""
        if self._starts.acquire(timeout=max(0.0, timeout_seconds)):
            self._starts.release()

    def stop(self) -> None:
        """Stop all tasks at once; nothing to do where Spark is gone."""
        with self._lock:
            slots = [slot for job in self._jobs.values() for slot in job.slots]
            for slot in slots:
                slot.end()
        if trouble_of(self._session):
            return
        self._wait_for_start(JOIN_SECONDS)
        tasks = [slot.task for slot in slots if slot.task is not None]
        stop_tasks([task for task in tasks if task.state in ("running", "draining")])

    def trouble(self) -> str:
        """Why nothing can run here any more, in a sentence; empty while it can."""
        return trouble_of(self._session) or self._misplaced

    def remove(self, job: str) -> None:
        """Forget a job whose tasks have ended, and what of its batches is still to come."""
        with self._lock:
            del self._jobs[job]
            self._runs = {run: kept for run, kept in self._runs.items() if kept.layout.task.job != job}
            if not any(kept.available_now for kept in self._jobs.values()):
                self._first_ends.clear()  # who comes next begins a new round


def ask_ends(jobs: Sequence[HostedJob]) -> None:
    """Where the topics that jobs read end now: one question to each broker, since one that is slow is waited for. Jobs
    whose topics do not answer keep what is known."""
    by_topics: dict[int, list[HostedJob]] = {}
    for job in jobs:
        by_topics.setdefault(id(job.bus.topics), []).append(job)
    for group in by_topics.values():
        names = sorted(frozenset[str]().union(*(job.reads for job in group)))
        try:
            ends = group[0].bus.topics.end_offsets(names)
        except MissingError:
            for job in group:  # a topic of one job is gone, which is none of the others' matter
                with suppress(PenstockError):  # its tasks say what is wrong with the topics
                    job.ends = job.bus.topics.end_offsets(job.code.spec.input_topics)
        except PenstockError:
            continue
        else:
            for job in group:
                job.ends = {place: end for place, end in ends.items() if place.topic in job.reads}


def positions_of(job: HostedJob, now: float) -> list[PartitionSample]:
    """Where a job stands; nothing of a partition whose end is not known yet, which would look like one at 0."""
    return [
        PartitionSample(job.name, place, now, job.ends[place], slot.committed.get(place, 0))
        for slot in job.slots
        for place in slot.partitions
        if place in job.ends
    ]
