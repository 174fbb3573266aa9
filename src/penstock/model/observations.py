"""What was measured of running jobs, as plain values (useful time, records, waits, backlog).

Every number may be missing (NaN), zero, negative, late or doubled: whoever decides sets the operator aside.
Times are seconds; instants are seconds since 1970.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from operator import attrgetter
from typing import overload

from penstock.model.ids import TaskId, TopicPartition


@dataclass(frozen=True, slots=True)
class InstanceSample:
    """What one instance (the n-th Spark task of a stage, over a batch or a window) did."""

    records_in: float
    records_out: float
    useful_seconds: float


@dataclass(frozen=True, slots=True)
class InstanceColumns(Sequence[InstanceSample]):
    """Instances of one stage by position, as columns of doubles: 100,000 of them are summed in one pass."""

    records_in: array[float]
    records_out: array[float]
    useful_seconds: array[float]

    @classmethod
    def of(cls, rows: Iterable[InstanceSample]) -> InstanceColumns:
        """The same instances as columns."""
        kept = tuple(rows)
        return cls(
            array("d", (row.records_in for row in kept)),
            array("d", (row.records_out for row in kept)),
            array("d", (row.useful_seconds for row in kept)),
        )

    def __len__(self) -> int:
        return len(self.useful_seconds)

    @overload
    def __getitem__(self, index: int) -> InstanceSample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[InstanceSample]: ...
    def __getitem__(self, index: int | slice) -> InstanceSample | Sequence[InstanceSample]:
        if isinstance(index, slice):
            return InstanceColumns(
                self.records_in[index], self.records_out[index], self.useful_seconds[index]
            )
        return InstanceSample(self.records_in[index], self.records_out[index], self.useful_seconds[index])


@dataclass(frozen=True, slots=True)
class CostMoments:
    """Sums over one stage's batches from which a cost per record and one per Spark task can be told apart.

    U is useful seconds of a batch, R the records the job took in with it, N the stage's Spark tasks; a batch weighs 1/U.
    """

    batches: float
    records: float
    """Sum of R."""
    tasks: float
    """Sum of N."""
    useful_seconds: float
    """Sum of U."""
    records_squared: float
    """Sum of R R / U."""
    records_tasks: float
    """Sum of R N / U."""
    tasks_squared: float
    """Sum of N N / U."""


_SUMS = tuple(f.name for f in fields(CostMoments))
_MOMENTS, _NO_MOMENTS = attrgetter(*_SUMS), (math.nan,) * len(_SUMS)
STAGE_FACTS = ("useful time", "Spark tasks", "longest task", "records in", "ceiling", "instances", *_SUMS)


@dataclass(frozen=True, slots=True)
class StageSample:
    """One Spark stage of a micro-batch, summed over its finished, successful Spark tasks; in a window, over its batches."""

    ordinal: int
    """Place among the batch's stages, in the order they ran: 0 reads the source."""
    spark_tasks: int
    """Spark tasks that it ran in; in a window, over all batches."""
    ceiling: int | None
    """Its Spark tasks where a shuffle fixed them (state partitions of a built-in operator); none where it follows
    threads."""
    useful_seconds: float
    records_in: float
    records_out: float
    bytes_in: float = 0.0
    bytes_out: float = 0.0
    fetch_wait_seconds: float = 0.0
    poll_wait_seconds: float = 0.0
    blocked_output_seconds: float = 0.0
    run_queue_wait_seconds: float = 0.0
    gc_seconds: float = 0.0
    python_seconds: float = 0.0
    scheduler_delay_seconds: float = 0.0
    spilled_bytes: float = 0.0
    peak_memory_bytes: float = 0.0
    wasted_seconds: float = 0.0
    """Run time of failed, killed and speculative attempts: never part of a rate."""
    longest_seconds: float = 0.0
    """Useful time of the longest Spark task: what can't be split finer bounds the batch from below."""
    elapsed_seconds: float = 0.0
    """From the first task's start to the last one's end."""
    instances: Sequence[InstanceSample] = ()
    moments: CostMoments | None = None
    """Only in a window."""

    def facts(self) -> tuple[float, ...]:
        """Its numbers in the order of `STAGE_FACTS`: a ceiling that is none is infinite, moments that are none NaN."""
        m = self.moments
        return (
            self.useful_seconds,
            self.spark_tasks,
            self.longest_seconds,
            self.records_in,
            math.inf if self.ceiling is None else self.ceiling,
            len(self.instances),
            *(_NO_MOMENTS if m is None else _MOMENTS(m)),
        )


@dataclass(frozen=True, slots=True)
class BatchSample:
    """One committed micro-batch of one task."""

    task: TaskId
    generation: int
    epoch: int
    batch_id: int
    started_at: float
    duration_seconds: float
    stage_seconds: float
    """Time in which any of its stages ran; the rest of the duration is h, which no thread shortens."""
    threads: int
    """Spark partitions that its plan allowed."""
    records_in: Mapping[str, float]
    """Per input topic, from the planned offsets."""
    records_out: Mapping[str, float]
    """Per output topic, from the sink's own commit."""
    bytes_in: float
    bytes_out: float
    stages: tuple[StageSample, ...]
    state_rows: int = 0
    state_bytes: int = 0
    dead_letters: int = 0
    admitted: float = 0.0
    """Largest number of records that admission allowed; 0 when it set no limit."""

    @property
    def ended_at(self) -> float:
        return self.started_at + self.duration_seconds

    @property
    def overhead_seconds(self) -> float:
        """h: the part of the batch in which no stage ran."""
        return max(0.0, self.duration_seconds - self.stage_seconds)


@dataclass(frozen=True, slots=True)
class PartitionSample:
    """One topic partition as one job sees it, at one instant."""

    job: str
    place: TopicPartition
    at: float
    end: int
    committed: int

    @property
    def backlog(self) -> int:
        return max(0, self.end - self.committed)


WINDOW_FACTS = (
    "records in", "elapsed time", "end", "threads", "batches", "overhead", "backlog", "backlog before", "growing",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobWindow:
    """A whole number of one job's batches, closed at the first commit after the window's length, over all its tasks."""

    job: str
    generation: int
    threads: int
    """Threads of the whole job while it lasted; a change of threads closes a window early."""
    started_at: float
    ended_at: float
    batches: int
    """Those with records, where there are any: what costs and means are taken over."""
    records_in: Mapping[str, float]
    """Per input topic."""
    records_out: Mapping[str, float]
    """Per output topic."""
    stages: tuple[StageSample, ...]
    """Summed over batches and tasks, by ordinal; `longest_seconds` is the mean over batches of each batch's longest."""
    overhead_seconds: float
    """Mean over batches of h."""
    batch_seconds: float
    """Mean over batches of the batch's duration."""
    production_rates: Mapping[str, float]
    """Per input topic: records per second appended while the window lasted (NaN when not known)."""
    backlog: Mapping[str, float]
    """Per input topic at the window's end: records not yet committed."""
    backlog_before: Mapping[str, float]
    """The same at its start."""
    wasted_seconds: float = 0.0
    late_batches: int = 0
    """Batches that took longer than L."""
    missing_tasks: int = 0
    """Tasks of the job without a batch in the window."""
    rejected_batches: int = 0
    """Batches left out because a number in them was missing or impossible."""
    idle_batches: int = 0
    """Batches without records, beside others."""
    growing: bool = False
    """Whether admission was still learning what a batch may hold: they filled it, took far less than L, and grew."""
    partition_backlog: Mapping[TopicPartition, int] = field(default_factory=dict[TopicPartition, int])
    facts: array[float] = field(init=False, compare=False, repr=False)
    """The numbers of `WINDOW_FACTS`, then those of `STAGE_FACTS` of each stage, written down when the window closes:
    a round then joins columns instead of reading a thousand windows number by number."""
    instance_facts: array[float] = field(init=False, compare=False, repr=False)
    """Of each stage, the useful seconds of all its instances, then the records that they took in."""

    def __post_init__(self) -> None:
        facts: list[float] = [
            sum(self.records_in.values()),
            self.ended_at - self.started_at,
            self.ended_at,
            self.threads,
            self.batches,
            self.overhead_seconds,
            sum(self.backlog.values()),
            sum(self.backlog_before.values()),
            self.growing,
        ]
        instances = array("d")
        for stage in self.stages:
            facts += stage.facts()
            rows = stage.instances
            columns = rows if isinstance(rows, InstanceColumns) else InstanceColumns.of(rows)
            instances += columns.useful_seconds
            instances += columns.records_in
        object.__setattr__(self, "facts", array("d", facts))
        object.__setattr__(self, "instance_facts", instances)

    @property
    def elapsed_seconds(self) -> float:
        return self.ended_at - self.started_at


@dataclass(frozen=True, slots=True)
class ProcessSample:
    """Memory of one container process, read from the system."""

    kind: str
    """driver, jvm, executor or python-worker."""
    pid: int
    rss_bytes: int
    """Resident; pages that processes share (forked workers do) count for each in proportion, where the system tells."""
    cpu_seconds: float


@dataclass(frozen=True, slots=True)
class ContainerSample:
    """A container as it stands: heap, garbage collection, memory, slots, executors."""

    container: str
    at: float
    slots: int
    executors: int
    heap_used_bytes: int
    heap_committed_bytes: int
    heap_max_bytes: int
    gc_seconds: float
    gc_count: int
    processes: tuple[ProcessSample, ...] = ()

    @property
    def rss_bytes(self) -> int:
        return sum(p.rss_bytes for p in self.processes)


@dataclass(frozen=True, slots=True)
class Observation:
    """What a round of decisions is told of one pipeline. Anything may be missing."""

    at: float
    windows: Mapping[str, JobWindow]
    """Per job, the newest window closed since the last round; a job without one is absent."""
    threads: Mapping[str, int]
    """Per job, threads now, over all its tasks."""
    source_rates: Mapping[str, float]
    """Per topic that no job of the pipeline writes: records per second appended now."""
    slots: int = 0
    """Slots of the container; 0 when not known."""
    executors: int = 0
    """Executors of the container; 0 when not known."""
    backlog: Mapping[str, float] = field(default_factory=dict[str, float])
    """Per job, records not committed now; where a job is absent, its window's count stands."""
    changing: frozenset[str] = frozenset()
    """Source topics whose rate is on its way up or down right now: nobody scales in on it."""
    slots_per_executor: int = 0
    executors_min: int = 1
    executors_max: int = 0
    """Most executors that may be asked for; 0: their number is fixed."""
