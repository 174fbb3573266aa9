"""Windows of whole batches: a job's window closes at the first commit after the policy interval.

Rules: a batch counts once; one that ended before the open window began is late and left out; a number that is missing
or impossible leaves its batch out and is counted, and so does an end in the future; another number of threads, or
another generation, closes a window early, since rates before and after it are not of one kind. Pure: state and samples
in, state and closed windows out.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from penstock.core.sizing.batch_time import objective_seconds
from penstock.core.sizing.summing import sum_stages
from penstock.model.ids import TaskId, TopicPartition
from penstock.model.jobs import JobSpec, PipelineSpec
from penstock.model.observations import BatchSample, JobWindow, PartitionSample

FILLED_SHARE = 0.95
"""Of what was admitted: a batch that holds so much was held back."""
LOW_SHARE = 0.7
"""Of L: a batch that takes less leaves room for a larger one."""
GROWTH = 1.25
AHEAD_SECONDS = 60.0
"""How far ahead of now an end is still believed: clocks differ by less, and what is believed makes what is older late."""
BatchKey = tuple[TaskId, int, int]
"""(task, generation, batch id)."""


@dataclass(frozen=True, slots=True)
class OpenWindow:
    """One job's window as far as it has come."""

    job: str
    window_seconds: float
    objective_seconds: float
    tasks: int
    owner_limits: bool = False
    """Whether the owner bounds batches, so that small ones are nothing to wait over."""
    generation: int = -1
    started_at: float = math.nan
    batches: tuple[BatchSample, ...] = ()
    threads: Mapping[TaskId, int] = field(default_factory=dict[TaskId, int])
    seen: frozenset[BatchKey] = frozenset()
    """Batches that came since it opened, so that one that comes again is known; older ones are late by themselves."""
    worked: Mapping[TaskId, tuple[int, int]] = field(default_factory=dict[TaskId, tuple[int, int]])
    """Per task, epoch and threads of its newest batch that had records."""
    cold: frozenset[tuple[TaskId, int]] = frozenset()
    """Batches of this window in which workers started: the first of a run with records, and any with more threads."""
    rejected: int = 0
    places: Mapping[TopicPartition, PartitionSample] = field(
        default_factory=dict[TopicPartition, PartitionSample]
    )
    """Newest sample of each partition."""
    places_before: Mapping[TopicPartition, PartitionSample] = field(
        default_factory=dict[TopicPartition, PartitionSample]
    )
    """The same when the window began."""

    @property
    def ended_at(self) -> float:
        return max((b.ended_at for b in self.batches), default=math.nan)


Windows = Mapping[str, OpenWindow]


def start_windows(pipeline: PipelineSpec) -> Windows:
    """A window for each job, nothing in it."""
    return {job.name: _open(job) for job in pipeline.jobs}


def _open(job: JobSpec) -> OpenWindow:
    options = job.options
    return OpenWindow(
        job.name,
        options.scaling.policy_interval_seconds,
        objective_seconds(options.interval_seconds, options.slo_lag_seconds),
        options.tasks,
        options.max_records_per_batch is not None or options.max_bytes_per_batch is not None,
    )


def observe_samples(
    windows: Windows,
    batches: Iterable[BatchSample],
    partitions: Iterable[PartitionSample],
    *,
    now: float = math.inf,
) -> tuple[Windows, tuple[JobWindow, ...]]:
    """Take in one collection of samples; jobs that are not of the pipeline are passed over."""
    latest = now + AHEAD_SECONDS
    by_job: dict[str, list[BatchSample]] = {}
    for sample in batches:
        by_job.setdefault(sample.task.job, []).append(sample)
    places: dict[str, dict[TopicPartition, PartitionSample]] = {}
    for place in partitions:
        if place.at <= latest:  # nor is an instant that is missing
            places.setdefault(place.job, {})[place.place] = place
    following = dict(windows)
    closed: list[JobWindow] = []
    for name in windows:
        if name not in by_job and name not in places:
            continue
        following[name], done = _observe_job(
            windows[name], by_job.get(name, ()), places.get(name, {}), latest
        )
        closed += done
    return following, tuple(closed)


def _observe_job(
    state: OpenWindow,
    batches: Sequence[BatchSample],
    places: Mapping[TopicPartition, PartitionSample],
    latest: float,
) -> tuple[OpenWindow, list[JobWindow]]:
    closed: list[JobWindow] = []
    known = {p: s for p, s in places.items() if math.isfinite(s.at)}
    newer = {p: s for p, s in known.items() if p not in state.places or s.at >= state.places[p].at}
    state = replace(state, places={**state.places, **newer})
    if not state.places_before:
        state = replace(state, places_before=state.places)
    seen = set(state.seen)
    for sample in sorted(batches, key=_end_of):
        if _key(sample) in seen or sample.generation < state.generation:
            continue
        seen.add(_key(sample))
        if not is_sound(sample) or sample.ended_at > latest:
            state = replace(state, rejected=state.rejected + 1)
            continue
        before = len(closed)
        state = _take(state, sample, closed)
        if len(closed) > before:
            seen = {_key(held) for held in state.batches}
    return replace(state, seen=frozenset(seen)), closed


def _key(sample: BatchSample) -> BatchKey:
    return sample.task, sample.generation, sample.batch_id


def _end_of(sample: BatchSample) -> float:
    return sample.ended_at if math.isfinite(sample.ended_at) else -math.inf


def _take(state: OpenWindow, sample: BatchSample, closed: list[JobWindow]) -> OpenWindow:
    """One sound, new batch into the open window; what closes by it is added to `closed`."""
    if sample.ended_at <= state.started_at:
        return state
    other = state.threads.get(sample.task, sample.threads) != sample.threads
    if other and state.batches and sample.ended_at < state.ended_at:
        return state
    if state.batches and (other or sample.generation > state.generation):
        state = _close(state, closed)
    if sample.generation > state.generation:
        state = replace(state, generation=sample.generation, threads={}, worked={}, started_at=math.nan)
    begin = sample.started_at if math.isnan(state.started_at) else state.started_at
    state = _note_work(state, sample)
    state = replace(
        state,
        started_at=begin,
        batches=(*state.batches, sample),
        threads={**state.threads, sample.task: sample.threads},
    )
    return _close(state, closed) if sample.ended_at >= begin + state.window_seconds else state


def _note_work(state: OpenWindow, sample: BatchSample) -> OpenWindow:
    """Remember who worked with how many threads, and whether that was new."""
    if not math.fsum(sample.records_in.values()) > 0:
        return state
    epoch, threads = state.worked.get(sample.task, (-1, 0))
    cold = epoch != sample.epoch or sample.threads > threads
    return replace(
        state,
        worked={**state.worked, sample.task: (sample.epoch, sample.threads)},
        cold=state.cold | {(sample.task, sample.batch_id)} if cold else state.cold,
    )


def _close(state: OpenWindow, closed: list[JobWindow]) -> OpenWindow:
    closed.append(_summarise(state))
    return replace(
        state,
        started_at=state.ended_at,
        batches=(),
        cold=frozenset(),
        rejected=0,
        places_before=state.places,
    )


def _summarise(state: OpenWindow) -> JobWindow:
    """Batches without records run other stages than those with: where there are both, they are left out of costs."""
    batches = tuple(b for b in state.batches if math.fsum(b.records_in.values()) > 0) or state.batches
    count = len(batches)
    present = {b.task for b in state.batches}
    return JobWindow(
        job=state.job,
        generation=state.generation,
        threads=sum(state.threads.values()),
        started_at=state.started_at,
        ended_at=state.ended_at,
        batches=count,
        idle_batches=len(state.batches) - count,
        growing=not state.owner_limits and any(_grows(batches, task, state) for task in present),
        records_in=_add_up(b.records_in for b in batches),
        records_out=_add_up(b.records_out for b in state.batches),
        stages=sum_stages(batches, state.cold),
        overhead_seconds=math.fsum(b.overhead_seconds for b in batches) / count,
        batch_seconds=math.fsum(b.duration_seconds for b in batches) / count,
        production_rates=_production(state),
        backlog=_backlog(state.places.values()),
        backlog_before=_backlog(state.places_before.values()),
        wasted_seconds=math.fsum(s.wasted_seconds for b in state.batches for s in b.stages),
        late_batches=sum(1 for b in batches if 0 < state.objective_seconds < b.duration_seconds),
        missing_tasks=max(0, state.tasks - len(present)),
        rejected_batches=state.rejected,
        partition_backlog={place: s.backlog for place, s in state.places.items()},
    )


def _grows(batches: Sequence[BatchSample], task: TaskId, state: OpenWindow) -> bool:
    """Whether a task's newest batch filled what was admitted, took far less than L, and more was admitted than before."""
    mine = [b for b in batches if b.task == task]
    if len(mine) < 2:
        return False
    first, last = mine[0], mine[-1]
    filled = 0 < FILLED_SHARE * last.admitted <= math.fsum(last.records_in.values())
    grew = last.admitted > GROWTH * first.admitted
    return filled and grew and last.duration_seconds < LOW_SHARE * state.objective_seconds


def _add_up(maps: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for counts in maps:
        for name, count in counts.items():
            total[name] = total.get(name, 0.0) + count
    return total


def _backlog(samples: Iterable[PartitionSample]) -> dict[str, float]:
    total: dict[str, float] = {}
    for sample in samples:
        total[sample.place.topic] = total.get(sample.place.topic, 0.0) + sample.backlog
    return total


def _production(state: OpenWindow) -> dict[str, float]:
    """Per topic, records per second appended between the samples at the window's start and end; NaN when not known."""
    grown: dict[str, float] = {}
    spans: dict[str, float] = {}
    for place, newest in state.places.items():
        before = state.places_before.get(place)
        span = newest.at - before.at if before is not None else math.nan
        more = float(newest.end - before.end) if before is not None else math.nan
        grown[place.topic] = grown.get(place.topic, 0.0) + (more if more >= 0 else math.nan)
        spans[place.topic] = max(spans.get(place.topic, 0.0), span)
    return {topic: grown[topic] / spans[topic] if spans[topic] > 0 else math.nan for topic in grown}


def is_sound(sample: BatchSample) -> bool:
    """Whether every number that a window sums is there and possible."""
    numbers = [
        sample.duration_seconds,
        sample.stage_seconds,
        *sample.records_in.values(),
        *sample.records_out.values(),
    ]
    for stage in sample.stages:
        numbers += [stage.useful_seconds, stage.records_in, stage.records_out, stage.longest_seconds]
        numbers += [stage.wasted_seconds, float(stage.spark_tasks)]
        for row in stage.instances:
            numbers += [row.records_in, row.records_out, row.useful_seconds]
    return (
        math.isfinite(sample.started_at)
        and sample.duration_seconds > 0
        and sample.threads >= 1
        and all(math.isfinite(n) and n >= 0 for n in numbers)
    )
