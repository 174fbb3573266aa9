"""A container's task manager: all tasks of a pipeline in one Spark application, kept running.

Rules: a failed task runs again after a growing pause and never takes another with it; triggers are staggered, since
equal intervals fire together; a job's threads are shared by its tasks as evenly as they go. Measures through the
probe, and lets what was measured bound the next batch. Decides nothing about sizes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.core.sizing.admission import limit_records, observe_batch
from penstock.model.errors import ConflictError, EnvironmentProblem, PenstockError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.observations import BatchSample, PartitionSample
from penstock.model.status import JobState, RunEvent
from penstock.ports.measurements import Measured
from penstock.spark.assigned import AssignedPlanner
from penstock.spark.bus import Bus, lost_records
from penstock.spark.executors import Executors
from penstock.spark.frames import JobCode, analyse
from penstock.spark.hub import PlannerHub
from penstock.spark.layout import initial_offsets, open_layout, sweep, tasks_before
from penstock.spark.offsets import StreamId
from penstock.spark.planner import TaskLayout, TaskPlanner, TaskStart
from penstock.spark.probe import Probe
from penstock.spark.session import jvm, trouble_of
from penstock.spark.slots import Slot, drain_tasks, share_evenly, staggered
from penstock.spark.stateful import keeps_state
from penstock.spark.task import Task, TaskPlace

RUNS_KEPT = 3
"""Runs of a task whose late measurements are still understood."""


@dataclass
class _HostedJob:
    code: JobCode
    bus: Bus
    slots: list[Slot]
    session: SparkSession
    available_now: bool
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """Where its input topics ended when they last answered."""


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
        self._jobs: dict[str, _HostedJob] = {}
        self._notices: list[tuple[str, str]] = []
        self._runs: dict[str, TaskPlanner] = {}
        """Planners by run, ended ones too: a batch's measurements may come after its end."""
        self._lock = threading.RLock()

    # -- jobs ------------------------------------------------------------------------------------------------------

    def add(self, code: JobCode, bus: Bus, *, available_now: bool = False) -> None:
        """Place a job here and start its tasks; what it needs of topics is made."""
        self._check_reach(bus)
        bus = bus.prepare(self._session, code.spec)
        self._notices += [(code.spec.name, bus.notice)] if bus.notice else []
        self.prepare_topics(code, bus)
        session = self._session.newSession()
        session.conf.set("spark.sql.shuffle.partitions", str(code.spec.options.state_partitions))
        count = code.spec.options.tasks
        shares = share_evenly(code.spec.options.threads, count)
        with self._lock:
            first_rank = sum(len(job.slots) for job in self._jobs.values())
            slots = [
                Slot(
                    TaskId(code.spec.name, i),
                    self._part(code, bus, i, count),
                    first_rank + i,
                    threads=shares[i],
                )
                for i in range(count)
            ]
            job = _HostedJob(code, bus, slots, session, available_now)
            self._check_layout(job)
            self._jobs[code.spec.name] = job
            for slot in slots:
                self._start(job, slot)

    def _check_reach(self, bus: Bus) -> None:
        """The embedded log's files are on this host: executors elsewhere would not find them."""
        hosts = self._executors.elsewhere() if bus.one_host else []
        if hosts:
            raise EnvironmentProblem(
                f"The embedded log lies on this host, and executors run on {', '.join(hosts)}; "
                'set bus = "kafka" in the profile, or use a Spark master whose workers are on this host.'
            )

    def prepare_topics(self, code: JobCode, bus: Bus) -> None:
        """Make the topics that it writes, reads, or sends what does not parse to."""
        for name in (*code.spec.input_topics, *code.spec.output_topics):
            bus.topics.create(name, code.topics[name].partitions, topic_config(code, name))
        for name in code.spec.input_topics:
            topic = code.topics[name]
            if topic.on_bad_record == "dead_letter":
                partitions = len(bus.topics.describe(name).partitions)
                bus.topics.create(topic.dead_letter, partitions)

    def _part(self, code: JobCode, bus: Bus, index: int, count: int) -> tuple[TopicPartition, ...]:
        """Task i of n owns each topic's partitions p with p mod n = i."""
        topics = dict.fromkeys(code.spec.input_topics)
        places = [p.place for topic in topics for p in bus.topics.describe(topic).partitions]
        return tuple(place for place in places if place.partition % count == index)

    def _check_layout(self, job: _HostedJob) -> None:
        """Another number of tasks is refused where state lies by task."""
        before = tasks_before(self._checkpoints, job.code.spec.name)
        if before and before != len(job.slots) and keeps_state(analyse(job.session, job.code)):
            raise ConflictError(
                f"Job {job.code.spec.name!r} keeps state in {before} tasks and cannot run in {len(job.slots)}: "
                f"its state would be lost; set tasks = {before}, or start it anew with a new name."
            )

    def _shape(self, job: _HostedJob) -> dict[str, int]:
        places = [place for slot in job.slots for place in slot.partitions]
        return {
            topic: sum(1 for p in places if p.topic == topic) for topic in sorted({p.topic for p in places})
        }

    # -- tasks -----------------------------------------------------------------------------------------------------

    def _start(self, job: _HostedJob, slot: Slot) -> None:
        spec = job.code.spec
        layout = open_layout(self._checkpoints, spec.name, len(job.slots), self._shape(job))
        streams = tuple(
            StreamId(spec.name, given.topic, i)
            for i, given in enumerate(g for g in spec.inputs if g.topic is not None)
            if given.topic is not None
        )
        task_layout = TaskLayout(
            job=spec,
            task=slot.id,
            fence=Fence(layout.generation, layout.epoch),
            streams=streams,
            places=slot.partitions,
            outputs=spec.output_topics,
            dead_letters={name: job.code.topics[name].dead_letter for name in spec.input_topics},
            hooked=all(o.topic is not None or (o.sink is not None and o.sink.function) for o in spec.outputs),
        )
        # Fence first: where a new generation begins is read only when no older run can commit any more.
        newest = job.bus.open(slot.id, task_layout.fence, slot.partitions)
        initial = initial_offsets(layout, slot.id.index, lambda: self._live(job, slot))
        start, limit = TaskStart(initial, newest), lambda threads: limit_records(slot.admission, threads)
        checkpoint = layout.checkpoint(slot.id.index)
        sweep(checkpoint)
        if job.bus.spark_plans:
            planner = AssignedPlanner(task_layout, job.bus, start, limit, checkpoint)
        else:
            planner = TaskPlanner(task_layout, job.bus, start, limit)
        interval = staggered(spec.options.interval_seconds, slot.rank)
        place = TaskPlace(self.hub, job.session, checkpoint, interval, job.available_now)
        task = Task(job.code, job.bus, planner, place)
        task.set_threads(slot.threads)
        self._keep(planner)
        slot.committed = planner.positions()
        task.start()
        slot.begin(task)

    def _keep(self, planner: TaskPlanner) -> None:
        layout = planner.layout
        self._runs[layout.run] = planner
        runs = [run for run, kept in self._runs.items() if kept.layout.task == layout.task]
        for old in runs[:-RUNS_KEPT]:
            del self._runs[old]

    def _live(self, job: _HostedJob, slot: Slot) -> dict[TopicPartition, int]:
        """Where a fresh generation begins: what the sink holds of this job, else each partition's beginning."""
        begin = job.bus.topics.begin_offsets(job.code.spec.input_topics) if slot.partitions else {}
        done = job.bus.topics.progress(job.code.spec.name, job.code.spec.input_topics)
        for place in slot.partitions:
            if done.get(place, begin.get(place, 0)) < begin.get(place, 0):
                raise lost_records(place, done[place], begin[place])
        return {place: max(begin.get(place, 0), done.get(place, 0)) for place in slot.partitions}

    def tick(self, now: float) -> list[RunEvent]:
        """Notice ended tasks and start those whose pause is over; what happened."""
        self._executors.settle()
        with self._lock:
            events = [RunEvent(now, "notice", text, name) for name, text in self._notices]
            self._notices.clear()
            for job in self._jobs.values():
                for slot in job.slots:
                    events += self._tend(job, slot, now)
        return events

    def _tend(self, job: _HostedJob, slot: Slot, now: float) -> list[RunEvent]:
        if slot.task is not None and slot.retry_at is None:
            return self._notice(job, slot, slot.task, now)
        if slot.retry_at is None or now < slot.retry_at:
            return []
        return [self._start_again(job, slot, now)]

    def _notice(self, job: _HostedJob, slot: Slot, task: Task, now: float) -> list[RunEvent]:
        """Whoever saw the run end first, its end is told once."""
        state = task.look()
        if state == slot.told:
            return []
        slot.told = state
        if state not in ("failed", "fenced"):
            return []
        assert task.failure is not None
        text = f"{slot.id} {state}: {task.failure}"
        if state == "failed" and not slot.ending:
            pause = slot.restarts.failed(now)
            slot.retry_at = now + pause
            text += f" It starts again in {pause:.0f} s."
        return [RunEvent(now, state, text, job.code.spec.name, details=task.failure.whole)]

    def _start_again(self, job: _HostedJob, slot: Slot, now: float) -> RunEvent:
        name = job.code.spec.name
        slot.restarts_total += 1
        try:
            self._start(job, slot)
        except Exception as error:  # noqa: BLE001  whatever the owner's code or Spark raises: it is tried again
            slot.retry_at = now + slot.restarts.failed(now)
            reason = str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
            return RunEvent(
                now, "failed", f"{slot.id} did not start: {reason.splitlines()[0]}", name, details=reason
            )
        return RunEvent(now, "restarted", f"{slot.id} runs again.", name)

    # -- measurements and changes ----------------------------------------------------------------------------------

    def collect(self, now: float) -> Measured:
        """All batches since the last call, each partition as each job sees it, the container's memory."""
        with self._lock:
            batches: list[BatchSample] = []
            for sample, ends in self._probe.batches(self._runs):
                batches.append(sample)
                self._note(sample, ends, now)
            partitions = [p for job in self._jobs.values() for p in self._positions(job, now)]
            container = self._probe.container(self.name, now, self.slots())
            return Measured(tuple(batches), tuple(partitions), container)

    def _note(self, sample: BatchSample, ends: Mapping[TopicPartition, int], now: float) -> None:
        job = self._jobs[sample.task.job]
        slot = job.slots[sample.task.index]
        slot.note(sample, ends, now)
        options = job.code.spec.options
        slot.admission = observe_batch(
            slot.admission, sample, options.interval_seconds, options.slo_lag_seconds
        )

    def _positions(self, job: _HostedJob, now: float) -> list[PartitionSample]:
        if not job.code.spec.input_topics:
            return []
        with suppress(PenstockError):  # its tasks say what is wrong with the topics
            job.ends = job.bus.topics.end_offsets(job.code.spec.input_topics)
        return [
            PartitionSample(
                job.code.spec.name, place, now, job.ends.get(place, 0), slot.committed.get(place, 0)
            )
            for slot in job.slots
            for place in slot.partitions
        ]

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
        it failed, or had to be stopped in the middle.
        """
        with self._lock:
            slots = [s for name, job in self._jobs.items() if jobs is None or name in jobs for s in job.slots]
            for slot in slots:
                slot.end()
        return drain_tasks([slot.task for slot in slots if slot.task is not None], timeout_seconds)

    def stop(self) -> None:
        """Stop all tasks at once."""
        with self._lock:
            for job in self._jobs.values():
                for slot in job.slots:
                    slot.end()
                    if slot.task is not None and slot.task.state in ("running", "draining"):
                        slot.task.stop()

    def trouble(self) -> str:
        """Why nothing can run here any more, in a sentence; empty while it can."""
        return trouble_of(self._session)

    def remove(self, job: str) -> None:
        """Forget a job whose tasks have ended, and what of its batches is still to come."""
        with self._lock:
            del self._jobs[job]
            self._runs = {run: kept for run, kept in self._runs.items() if kept.layout.task.job != job}


def topic_config(code: JobCode, name: str) -> dict[str, str]:
    """Retention, as topics keep it."""
    topic = code.topics[name]
    config: dict[str, str] = {}
    if topic.retention_seconds is not None:
        config["retention.ms"] = str(round(topic.retention_seconds * 1000))
    if topic.retention_bytes is not None:
        config["retention.bytes"] = str(topic.retention_bytes)
    return config
