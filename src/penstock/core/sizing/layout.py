"""A pipeline as columns: jobs in the order of the graph, topics and edges by number, options as arrays.

Made once when a strategy starts; a cycle is refused here, by name. Knows specs, no measurements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from penstock.core.sizing.batch_time import objective_seconds
from penstock.model.graph import order_jobs, source_topics
from penstock.model.jobs import JobOptions, JobSpec, PipelineSpec

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Layout:
    """Arrays are by job, in the order of `names`."""

    pipeline: str
    names: tuple[str, ...]
    jobs: tuple[JobSpec, ...]
    index: Mapping[str, int]
    topics: tuple[str, ...]
    sources: tuple[tuple[int, str], ...]
    """(topic number, name) of topics that no job writes."""
    reads: tuple[tuple[int, ...], ...]
    """Per job, numbers of the topics it reads."""
    writes: tuple[tuple[tuple[int, int], ...], ...]
    """Per job, (topic number, edge number) of what it writes."""
    edges: tuple[tuple[int, str], ...]
    """(job, topic) of each edge: where a selectivity belongs."""
    written_by: tuple[tuple[int, ...], ...]
    """Per topic, the numbers of the edges that end in it."""
    edge_jobs: Ints
    """The job alone."""
    component: Ints
    """Jobs joined by topics share a number: they act together."""
    objective: Floats
    """L in seconds; the interval where the lag objective leaves nothing."""
    feasible: Bools
    """False where the lag objective is not above the interval."""
    interval: Floats
    slo_lag: Floats
    least: Ints
    most: Ints
    most_by_partitions: Bools
    """Whether partitions, not `max_threads`, are the ceiling."""
    tasks: Ints
    scalable: Bools
    priority: Ints
    policy_interval: Floats
    warm_up: Ints
    activation: Ints
    activation_median: Bools
    min_change: Ints
    """-1 where the default rule holds."""
    max_ineffective: Ints
    target_ratio: Floats
    roll_back_loss: Floats
    scale_in_share: Floats

    def __len__(self) -> int:
        return len(self.names)


def lay_out(pipeline: PipelineSpec) -> Layout:
    """Columns of a pipeline; a cycle is a `SpecError` that names its jobs."""
    names = order_jobs(pipeline)
    jobs = tuple(pipeline.job(name) for name in names)
    topics = tuple(dict.fromkeys(t for job in jobs for t in (*job.input_topics, *job.output_topics)))
    number = {topic: i for i, topic in enumerate(topics)}
    edges = tuple((i, label) for i, job in enumerate(jobs) for label in job.output_topics)
    place = {edge: e for e, edge in enumerate(edges)}
    written_by: list[list[int]] = [[] for _ in topics]
    for (_, label), e in place.items():
        written_by[number[label]].append(e)
    partitions = {topic.name: topic.partitions for topic in pipeline.topics}
    bounds = [_bounds(job, partitions) for job in jobs]
    objectives = [objective_seconds(j.options.interval_seconds, j.options.slo_lag_seconds) for j in jobs]

    def floats(read: Callable[[JobOptions], float]) -> Floats:
        return np.array([read(job.options) for job in jobs], dtype=np.float64)

    def ints(read: Callable[[JobOptions], int]) -> Ints:
        return np.array([read(job.options) for job in jobs], dtype=np.int64)

    def bools(read: Callable[[JobOptions], bool]) -> Bools:
        return np.array([read(job.options) for job in jobs], dtype=np.bool_)

    return Layout(
        pipeline=pipeline.name,
        names=names,
        jobs=jobs,
        index={name: i for i, name in enumerate(names)},
        topics=topics,
        sources=tuple((number[topic], topic) for topic in source_topics(pipeline)),
        reads=tuple(tuple(number[t] for t in job.input_topics) for job in jobs),
        writes=tuple(
            tuple((number[t], place[i, t]) for t in job.output_topics) for i, job in enumerate(jobs)
        ),
        edges=edges,
        written_by=tuple(map(tuple, written_by)),
        edge_jobs=np.array([job for job, _ in edges], dtype=np.int64),
        component=_components(jobs),
        objective=np.array(
            [at if at > 0 else j.options.interval_seconds for at, j in zip(objectives, jobs, strict=True)]
        ),
        feasible=np.array([at > 0 for at in objectives], dtype=np.bool_),
        interval=floats(lambda o: o.interval_seconds),
        slo_lag=floats(lambda o: o.slo_lag_seconds),
        least=np.array([low for low, _, _ in bounds], dtype=np.int64),
        most=np.array([high for _, high, _ in bounds], dtype=np.int64),
        most_by_partitions=np.array([by for _, _, by in bounds], dtype=np.bool_),
        tasks=ints(lambda o: o.tasks),
        scalable=bools(lambda o: o.scalable),
        priority=ints(lambda o: o.priority),
        policy_interval=floats(lambda o: o.scaling.policy_interval_seconds),
        warm_up=ints(lambda o: o.scaling.warm_up_windows),
        activation=ints(lambda o: o.scaling.activation_windows),
        activation_median=bools(lambda o: o.scaling.activation == "median"),
        min_change=ints(lambda o: -1 if o.scaling.min_change is None else o.scaling.min_change),
        max_ineffective=ints(lambda o: o.scaling.max_ineffective),
        target_ratio=floats(lambda o: o.scaling.target_ratio),
        roll_back_loss=floats(lambda o: o.scaling.roll_back_loss),
        scale_in_share=floats(lambda o: o.scaling.scale_in_share),
    )


def _bounds(job: JobSpec, partitions: Mapping[str, int]) -> tuple[int, int, bool]:
    """(fewest, most threads, whether partitions are the ceiling): ordered jobs never split a partition."""
    options = job.options
    least = max(options.min_threads, options.tasks)
    counts = [partitions[topic] for topic in job.input_topics if topic in partitions]
    if options.ordered and counts and sum(counts) < options.max_threads:
        return min(least, sum(counts)), max(1, sum(counts)), True
    return min(least, options.max_threads), options.max_threads, False


def _components(jobs: tuple[JobSpec, ...]) -> Ints:
    root = list(range(len(jobs)))

    def find(i: int) -> int:
        while root[i] != i:
            root[i] = root[root[i]]
            i = root[i]
        return i

    holder: dict[str, int] = {}
    for i, job in enumerate(jobs):
        for topic in (*job.input_topics, *job.output_topics):
            root[find(i)] = find(holder.setdefault(topic, i))
    names: dict[int, int] = {}
    return np.array([names.setdefault(find(i), len(names)) for i in range(len(jobs))], dtype=np.int64)
