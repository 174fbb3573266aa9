"""How one run of a task is made: its topics, its generation and fence, where it begins, its planner and its checkpoint.

Rules: older runs are fenced off before it is read where a new generation begins. Asks topics and Spark, which may take
their time: whoever calls holds no lock that others wait for.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from pyspark.sql import SparkSession

from penstock.core.sizing.admission import limit_records
from penstock.model.errors import ConflictError
from penstock.model.ids import Fence, TopicPartition
from penstock.spark.assigned import AssignedPlanner
from penstock.spark.bus import Bus, lost_records
from penstock.spark.frames import JobCode, analyse
from penstock.spark.hub import PlannerHub
from penstock.spark.layout import (
    JobLayout,
    goes_on,
    has_checkpoints,
    initial_offsets,
    open_layout,
    sweep,
    what_differs,
)
from penstock.spark.offsets import StreamId, newest_batch
from penstock.spark.planner import TaskLayout, TaskPlanner, TaskStart
from penstock.spark.slots import Slot, staggered
from penstock.spark.spark_sinks import noted_path
from penstock.spark.state_files import sweep_state
from penstock.spark.stateful import keeps_state
from penstock.spark.task import Task, TaskPlace


@dataclass
class HostedJob:
    """A job that a host runs."""

    code: JobCode
    bus: Bus
    slots: list[Slot]
    session: SparkSession
    available_now: bool
    ends: dict[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    """Where its input topics ended when they last answered."""

    @property
    def name(self) -> str:
        return self.code.spec.name

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(self.code.spec.input_topics)

    @property
    def writes(self) -> frozenset[str]:
        """Its outputs, and where what does not parse goes."""
        letters = {self.code.topics[name].dead_letter for name in self.code.spec.input_topics}
        return frozenset(self.code.spec.output_topics) | letters


def feeders_of(job: HostedJob, jobs: Mapping[str, HostedJob]) -> frozenset[str]:
    """The jobs that write a topic which this one reads."""
    return frozenset(name for name, other in jobs.items() if other is not job and other.writes & job.reads)


def prepare_topics(code: JobCode, bus: Bus) -> None:
    """Make the topics that it writes, reads, or sends what does not parse to."""
    for name in (*code.spec.input_topics, *code.spec.output_topics):
        bus.topics.create(name, code.topics[name].partitions, topic_config(code, name))
    for name in code.spec.input_topics:
        topic = code.topics[name]
        if topic.on_bad_record == "dead_letter":
            partitions = len(bus.topics.describe(name).partitions)
            bus.topics.create(topic.dead_letter, partitions)


def topic_config(code: JobCode, name: str) -> dict[str, str]:
    """Retention, as topics keep it."""
    topic = code.topics[name]
    config: dict[str, str] = {}
    if topic.retention_seconds is not None:
        config["retention.ms"] = str(round(topic.retention_seconds * 1000))
    if topic.retention_bytes is not None:
        config["retention.bytes"] = str(topic.retention_bytes)
    return config


def partitions_of_task(code: JobCode, bus: Bus, index: int, count: int) -> tuple[TopicPartition, ...]:
    """Task i of n owns each topic's partitions p with p mod n = i."""
    topics = dict.fromkeys(code.spec.input_topics)
    places = [p.place for topic in topics for p in bus.topics.describe(topic).partitions]
    return tuple(place for place in places if place.partition % count == index)


def check_tasks(job: HostedJob, checkpoints: Path) -> None:
    """Refuse what would begin with batch 0 where state would be lost, or where Spark's file sink would skip batches."""
    _check_state(job, checkpoints)
    sinks = [] if goes_on(checkpoints, job.name, len(job.slots), _shape(job)) else job.code.spec.outputs
    for path in [noted_path(job.session, o.sink) for o in sinks if o.sink is not None]:
        if path:
            raise ConflictError(
                f"Job {job.name!r} begins with a new checkpoint, and its sink's path {path!r} holds the batches of an "
                "older one, by whose numbers Spark would skip the first of this one without a word; give it another path."
            )


def _check_state(job: HostedJob, checkpoints: Path) -> None:
    differs = what_differs(checkpoints, job.name, len(job.slots), _shape(job))
    if differs and _has_worked(job, checkpoints) and keeps_state(analyse(job.session, job.code)):
        raise ConflictError(
            f"Job {job.name!r} keeps state, which would be lost: {differs}; bring back how it was, or start it anew "
            f"with `penstock reset {job.name}`."
        )


def _has_worked(job: HostedJob, checkpoints: Path) -> bool:
    """Whether it has committed a batch, as far as its checkpoints or its topics know."""
    if has_checkpoints(checkpoints, job.name):
        return True
    done = job.bus.topics.progress(job.name, job.code.spec.input_topics)
    begin = job.bus.topics.begin_offsets(job.code.spec.input_topics) if done else {}
    return any(at > begin.get(place, 0) for place, at in done.items())


def make_task(
    job: HostedJob, slot: Slot, hub: PlannerHub, checkpoints: Path, until: Mapping[TopicPartition, int]
) -> Task:
    """The next run of a task, not started yet. `until`: where the inputs end for a job that works through them."""
    places = [place for each in job.slots for place in each.partitions]
    layout = open_layout(
        checkpoints, job.name, len(job.slots), _shape(job), lambda: job.bus.generation(job.name, places)
    )
    task_layout = _task_layout(job, slot, layout)
    # Fence first: where a new generation begins is read only when no older run can commit any more.
    newest = job.bus.open(slot.id, task_layout.fence, slot.partitions)
    try:
        initial = initial_offsets(layout, slot.id.index, lambda: _live(job, slot))
        checkpoint = layout.checkpoint(slot.id.index)
        sweep(checkpoint)
        if slot.task is None:  # what was left over is of another process
            sweep_state(checkpoint, time.time())
        start = TaskStart(initial, newest, dict(until), newest_batch(checkpoint / "offsets") + 1)
        planner = _planner(job, slot, task_layout, start, checkpoint)
        interval = staggered(job.code.spec.options.interval_seconds, slot.rank)
        place = TaskPlace(hub, job.session, checkpoint, interval, job.available_now)
        return Task(job.code, job.bus, planner, place)
    except BaseException:
        job.bus.close(slot.id, task_layout.fence)
        raise


def _planner(
    job: HostedJob, slot: Slot, layout: TaskLayout, start: TaskStart, checkpoint: Path
) -> TaskPlanner:
    def limit(threads: int) -> int | None:
        return limit_records(slot.admission, threads)

    if job.bus.spark_plans:
        return AssignedPlanner(layout, job.bus, start, limit, checkpoint)
    return TaskPlanner(layout, job.bus, start, limit)


def _task_layout(job: HostedJob, slot: Slot, layout: JobLayout) -> TaskLayout:
    spec = job.code.spec
    streams = tuple(
        StreamId(spec.name, given.topic, i)
        for i, given in enumerate(g for g in spec.inputs if g.topic is not None)
        if given.topic is not None
    )
    return TaskLayout(
        job=spec,
        task=slot.id,
        fence=Fence(layout.generation, layout.epoch),
        streams=streams,
        places=slot.partitions,
        outputs=spec.output_topics,
        dead_letters={name: job.code.topics[name].dead_letter for name in spec.input_topics},
        hooked=all(o.topic is not None or (o.sink is not None and o.sink.function) for o in spec.outputs),
    )


def _shape(job: HostedJob) -> dict[str, int]:
    places = [place for slot in job.slots for place in slot.partitions]
    return {topic: sum(1 for p in places if p.topic == topic) for topic in sorted({p.topic for p in places})}


def _live(job: HostedJob, slot: Slot) -> dict[TopicPartition, int]:
    """Where a fresh generation begins: what the sink holds of this job, else each partition's beginning."""
    begin = job.bus.topics.begin_offsets(job.code.spec.input_topics) if slot.partitions else {}
    done = job.bus.topics.progress(job.name, job.code.spec.input_topics)
    for place in slot.partitions:
        if done.get(place, begin.get(place, 0)) < begin.get(place, 0):
            raise lost_records(place, done[place], begin[place])
    return {place: max(begin.get(place, 0), done.get(place, 0)) for place in slot.partitions}
