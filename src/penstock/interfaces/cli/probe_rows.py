"""What a run's newest batches say, as rows. Pure but for the offsets it asks of topics.

Rates follow the model: useful time and records of finished Spark tasks, over the newest seconds. A number that is
not there is NaN, never 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from penstock.model.observations import BatchSample, ContainerSample, StageSample
from penstock.model.status import RunHeader, RunStatus
from penstock.model.units import format_bytes
from penstock.ports.journal import Entry
from penstock.ports.topics import Topics

Row = dict[str, object]
WIDE_ONLY = frozenset(
    [
        "state",
        "python_s",
        "gc_s",
        "fetch_wait_s",
        "wasted_s",
        "spilled",
        "heap_committed",
        "gc_count",
        "rss_python",
        "partition",
    ]
)
"""Columns of the wide table alone: what one asks for once a number of the narrow one looks wrong."""


class Seen:
    """The newest of a run's entries."""

    def __init__(self, header: RunHeader, over_seconds: float) -> None:
        self.header, self.over_seconds = header, over_seconds
        self.status: RunStatus | None = None
        self.container: ContainerSample | None = None
        self._batches: dict[tuple[str, int, int, int], BatchSample] = {}

    def take(self, entries: Iterable[Entry]) -> None:
        for entry in entries:
            if isinstance(entry, BatchSample):
                self._batches[str(entry.task), entry.generation, entry.epoch, entry.batch_id] = entry
            elif isinstance(entry, RunStatus):
                self.status = entry
            elif isinstance(entry, ContainerSample):
                self.container = entry
        newest = self.at
        self._batches = {k: b for k, b in self._batches.items() if b.ended_at >= newest - self.over_seconds}

    @property
    def at(self) -> float:
        """The newest instant that anything tells of."""
        ends = [batch.ended_at for batch in self._batches.values() if math.isfinite(batch.ended_at)]
        return max([self.header.started_at, *ends, *([self.status.at] if self.status else [])])

    @property
    def over(self) -> bool:
        return self.status is not None and self.status.phase in ("ended", "failed")

    def batches(self, job: str) -> list[BatchSample]:
        return [batch for batch in self._batches.values() if batch.task.job == job]


def job_rows(seen: Seen) -> list[Row]:
    """One row a job: batches, records, overhead, state."""
    return [_job_row(job, batches) for job in seen.header.jobs if (batches := seen.batches(job))]


def _job_row(job: str, batches: Sequence[BatchSample]) -> Row:
    count = len(batches)
    newest = {batch.task.index: batch for batch in sorted(batches, key=lambda b: b.batch_id)}
    return {
        "job": job,
        "threads": sum(batch.threads for batch in newest.values()),
        "batches": count,
        "batch_s": _mean([batch.duration_seconds for batch in batches]),
        "h_s": _mean([batch.overhead_seconds for batch in batches]),
        "in": sum(_total(batch.records_in.values()) for batch in batches),
        "out": sum(_total(batch.records_out.values()) for batch in batches),
        "state_rows": sum(batch.state_rows for batch in newest.values()),
        "state": format_bytes(sum(batch.state_bytes for batch in newest.values())),
        "dead_letters": sum(batch.dead_letters for batch in batches),
    }


def stage_rows(seen: Seen) -> list[Row]:
    """One row a stage of each job, summed over its batches."""
    rows: list[Row] = []
    for job in seen.header.jobs:
        stages: dict[int, list[StageSample]] = {}
        for batch in seen.batches(job):
            for stage in batch.stages:
                stages.setdefault(stage.ordinal, []).append(stage)
        rows += [_stage_row(job, ordinal, stages[ordinal]) for ordinal in sorted(stages)]
    return rows


def _stage_row(job: str, ordinal: int, stages: Sequence[StageSample]) -> Row:
    useful, tasks = sum(s.useful_seconds for s in stages), sum(s.spark_tasks for s in stages)
    records = sum(s.records_in for s in stages)
    return {
        "job": job,
        "stage": ordinal,
        "tasks": tasks / len(stages),
        "useful_s": useful,
        "in": records,
        "out": sum(s.records_out for s in stages),
        "true_rate": records / useful if useful > 0 else math.nan,
        "skew": _skew(stages),
        "python_s": sum(s.python_seconds for s in stages),
        "gc_s": sum(s.gc_seconds for s in stages),
        "fetch_wait_s": sum(s.fetch_wait_seconds for s in stages),
        "slot_wait_s": sum(s.scheduler_delay_seconds for s in stages),
        "cpu_wait_s": sum(s.run_queue_wait_seconds for s in stages),
        "wasted_s": sum(s.wasted_seconds for s in stages),
        "spilled": format_bytes(sum(s.spilled_bytes for s in stages)),
    }


def _skew(stages: Sequence[StageSample]) -> float:
    """The longest Spark task over the mean one, averaged over batches: 1 is even."""
    shares = [s.longest_seconds * s.spark_tasks / s.useful_seconds for s in stages if s.useful_seconds > 0]
    return _mean(shares)


def container_rows(seen: Seen) -> list[Row]:
    """One row for the container: the newest that the run told of it."""
    held, status = seen.container, seen.status
    if held is not None:
        workers = [p for p in held.processes if p.kind == "python-worker"]
        return [
            {
                "executors": held.executors,
                "slots": held.slots,
                "heap_used": format_bytes(held.heap_used_bytes),
                "heap_committed": format_bytes(held.heap_committed_bytes),
                "heap_max": format_bytes(held.heap_max_bytes),
                "gc_s": held.gc_seconds,
                "gc_count": held.gc_count,
                "rss": format_bytes(held.rss_bytes),
                "rss_python": format_bytes(sum(p.rss_bytes for p in workers)),
                "python_workers": len(workers),
            }
        ]
    if status is None:
        return []
    return [
        {
            "executors": status.executors,
            "slots": status.slots,
            "heap_used": format_bytes(status.heap_used_bytes),
            "heap_max": format_bytes(status.heap_max_bytes),
            "rss": format_bytes(status.rss_bytes),
        }
    ]


def backlog_rows(header: RunHeader, topics: Topics) -> list[Row]:
    """One row for each partition that a job reads: its end, what is committed, what is left."""
    there = set(topics.topics())
    rows: list[Row] = []
    for _, topic, job in header.edges:
        if not job or topic not in there:
            continue
        begins, ends = topics.begin_offsets([topic]), topics.end_offsets([topic])
        done = topics.progress(job, [topic], stable=False)
        for place in sorted(ends):
            committed = max(begins.get(place, 0), done.get(place, 0))
            rows.append(
                {
                    "job": job,
                    "topic": topic,
                    "partition": place.partition,
                    "end": ends[place],
                    "committed": committed,
                    "backlog": max(0, ends[place] - committed),
                }
            )
    return rows


def sum_partitions(rows: Sequence[Row]) -> list[Row]:
    """Backlog per job and topic: partitions added up."""
    summed: dict[tuple[object, object], Row] = {}
    for row in rows:
        into = summed.setdefault(
            (row["job"], row["topic"]),
            {
                "job": row["job"],
                "topic": row["topic"],
                "partitions": 0,
                "end": 0,
                "committed": 0,
                "backlog": 0,
            },
        )
        for name in ("end", "committed", "backlog"):
            into[name] = int(str(into[name])) + int(str(row[name]))
        into["partitions"] = int(str(into["partitions"])) + 1
    return list(summed.values())


def _total(values: Iterable[float]) -> float:
    return math.fsum(value for value in values if math.isfinite(value))


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if math.isfinite(value)]
    return math.fsum(known) / len(known) if known else math.nan
