"""The decision's peers: the same counters to the same number of threads, by a loop over instances and by NumPy.

Both do the arithmetic alone: true rates from all instances, selectivities, demand carried through the graph, and the
least threads that keep a batch of one stage within its objective. They remember nothing, check nothing, pace nothing and
explain nothing; the graph is laid out for them beforehand. Tests hold their answers equal to the decision's.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.core.sizing.batch_time import objective_seconds
from penstock.model.graph import order_jobs, source_topics
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import InstanceColumns, Observation

_ROUNDING = 1e-9


class PythonLoop:
    """One instance after another."""

    name = "Python loop"

    def __init__(self, pipeline: PipelineSpec) -> None:
        self._jobs = [pipeline.job(name) for name in order_jobs(pipeline)]

    def __call__(self, observation: Observation) -> dict[str, int]:
        """Threads that each job needs."""
        rates, threads = dict(observation.source_rates), dict[str, int]()
        for job in self._jobs:
            window = observation.windows[job.name]
            stage = window.stages[0]
            records = written = useful = 0.0
            held = _columns(stage.instances)
            for taken, made, spent in zip(
                held.records_in, held.records_out, held.useful_seconds, strict=True
            ):
                records += taken
                written += made
                useful += spent
            options = job.options
            seconds = objective_seconds(options.interval_seconds, options.slo_lag_seconds)
            target = sum(rates[topic] for topic in job.input_topics)
            backlog_rate = observation.backlog[job.name] / options.slo_lag_seconds
            work = (target + backlog_rate) * seconds * useful / records
            need = work / (seconds - window.overhead_seconds)
            threads[job.name] = max(1, math.ceil(need * (1 - _ROUNDING)))
            for topic in job.output_topics:
                rates[topic] = rates.get(topic, 0.0) + target * written / records
        return threads


class NumpyPass:
    """All instances in one pass over arrays, all jobs of a level of the graph at once."""

    name = "NumPy pass"

    def __init__(self, pipeline: PipelineSpec) -> None:
        self._names = order_jobs(pipeline)
        jobs = [pipeline.job(name) for name in self._names]
        number = {topic.name: i for i, topic in enumerate(pipeline.topics)}
        self._topics = len(number)
        self._sources = [(number[topic], topic) for topic in source_topics(pipeline)]
        reads = [(i, number[t]) for i, job in enumerate(jobs) for t in job.input_topics]
        writes = [(i, number[t]) for i, job in enumerate(jobs) for t in job.output_topics]
        level: dict[int, int] = {}
        for i, job in enumerate(jobs):
            above = [level[k] for k, t in writes if k in level and t in {number[x] for x in job.input_topics}]
            level[i] = 1 + max(above, default=-1)
        self._levels = [
            (_pairs(reads, level, n), _pairs(writes, level, n)) for n in range(1 + max(level.values()))
        ]
        self._seconds = np.array(
            [objective_seconds(j.options.interval_seconds, j.options.slo_lag_seconds) for j in jobs]
        )
        self._slo_lag = np.array([j.options.slo_lag_seconds for j in jobs])

    def __call__(self, observation: Observation) -> NDArray[np.int64]:
        """Threads that each job needs, in the order of the graph."""
        windows = [observation.windows[name] for name in self._names]
        columns: list[Any] = [_columns(w.stages[0].instances).records_out for w in windows]
        packs: list[Any] = [window.instance_facts for window in windows]
        lengths = np.fromiter(map(len, columns), np.int64, len(columns))
        written = np.add.reduceat(np.frombuffer(b"".join(columns)), np.cumsum(lengths) - lengths)
        twice = np.repeat(lengths, 2)
        sums = np.add.reduceat(np.frombuffer(b"".join(packs)), np.cumsum(twice) - twice)
        useful, records = sums[::2], sums[1::2]
        overhead = np.fromiter((w.overhead_seconds for w in windows), np.float64, len(windows))
        backlog = np.fromiter((observation.backlog[name] for name in self._names), np.float64, len(windows))
        target = self._carry(observation, written / records)
        work = (target + backlog / self._slo_lag) * self._seconds * useful / records
        need = np.ceil(work / (self._seconds - overhead) * (1 - _ROUNDING))
        return np.maximum(1, need.astype(np.int64))

    def _carry(self, observation: Observation, selectivity: NDArray[np.float64]) -> NDArray[np.float64]:
        rates, target = np.zeros(self._topics), np.zeros(len(self._names))
        for topic, name in self._sources:
            rates[topic] = observation.source_rates[name]
        for (readers, read), (writers, wrote) in self._levels:
            np.add.at(target, readers, rates[read])
            np.add.at(rates, wrote, target[writers] * selectivity[writers])
        return target


def _pairs(
    edges: list[tuple[int, int]], level: dict[int, int], wanted: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Edges of one level as two columns."""
    table = np.array([edge for edge in edges if level[edge[0]] == wanted], dtype=np.int64).reshape(-1, 2)
    return table[:, 0].copy(), table[:, 1].copy()


def _columns(instances: Any) -> InstanceColumns:
    return instances if isinstance(instances, InstanceColumns) else InstanceColumns.of(instances)
