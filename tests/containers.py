"""A container in memory and a journal that is a list: what loops drive, without Spark.

Each `collect` gives the measurements that a test laid ready; changes are kept, or refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from penstock.model.errors import ConflictError
from penstock.model.ids import TaskId, TopicPartition
from penstock.model.observations import BatchSample, ContainerSample, PartitionSample, StageSample
from penstock.model.status import JobState, RunEvent
from penstock.ports.journal import Entry
from penstock.ports.measurements import Measured

_Entry = TypeVar("_Entry")


def batch_of(
    job: str, number: int, ended_at: float, records: float, threads: int, **topics: str
) -> BatchSample:
    """Two seconds long, a millisecond of useful time a record."""
    useful = records * 0.001
    stage = StageSample(0, threads, None, useful, records, records, longest_seconds=useful / threads)
    return BatchSample(
        TaskId(job, 0), 0, 0, number, ended_at - 2.0, 2.0, 1.9, threads,
        {topics["reads"]: records}, {topics["writes"]: records} if "writes" in topics else {}, 0.0, 0.0, (stage,),
    )  # fmt: skip


def partition_of(job: str, topic: str, at: float, end: float, committed: float) -> PartitionSample:
    return PartitionSample(job, TopicPartition(topic, 0), at, int(end), int(committed))


def sample_of(at: float, slots: int = 8) -> ContainerSample:
    return ContainerSample("c", at, slots, 1, 10, 20, 30, 0.5, 2)


@dataclass
class FakeContainer:
    """`ports.container.Container`."""

    sizes: dict[str, int]
    room: int = 32
    hosts: int = 1
    refuses: set[str] = field(default_factory=set[str])
    """Jobs whose change is refused; `executors` refuses those."""
    batches: list[BatchSample] = field(default_factory=list[BatchSample])
    partitions: list[PartitionSample] = field(default_factory=list[PartitionSample])
    sample: ContainerSample | None = None
    events: list[RunEvent] = field(default_factory=list[RunEvent])
    states: dict[str, JobState] = field(default_factory=dict[str, JobState])
    tallies: dict[str, tuple[int, int, int]] = field(default_factory=dict[str, tuple[int, int, int]])
    calls: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def collect(self, now: float) -> Measured:
        told = Measured(tuple(self.batches), tuple(self.partitions), self.sample)
        self.batches, self.partitions = [], []
        return told

    def threads(self) -> Mapping[str, int]:
        return dict(self.sizes)

    def slots(self) -> int:
        return self.room

    def executors(self) -> int:
        return self.hosts

    def set_threads(self, job: str, threads: int) -> None:
        self.calls.append((job, threads))
        if job in self.refuses:
            raise ConflictError(f"{job} is being moved; nothing was done.")
        self.sizes[job] = threads

    def set_executors(self, executors: int) -> None:
        self.calls.append(("executors", executors))
        if "executors" in self.refuses:
            raise ConflictError("No executor is to be had; nothing was done.")
        self.hosts = executors

    def tick(self, now: float) -> list[RunEvent]:
        told, self.events = self.events, []
        return told

    def state(self, job: str) -> JobState:
        return self.states.get(job, "running")

    def counts(self, job: str) -> tuple[int, int, int]:
        return self.tallies.get(job, (0, 0, 0))

    def drain(self, timeout_seconds: float) -> bool:
        return True

    def stop(self) -> None:
        self.sizes.clear()


class Notes:
    """`ports.journal.Journal` as a list."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def write(self, entry: Entry) -> None:
        self.entries.append(entry)

    def of(self, kind: type[_Entry]) -> list[_Entry]:
        return [entry for entry in self.entries if isinstance(entry, kind)]
