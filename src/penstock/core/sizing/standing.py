"""How one job stands, from its newest window alone: what a status line shows between decisions.

Rules: the capacity shown is the batch-time formula at the job's present threads, as a decision would compute it from
this window and nothing before it; a number that can't be known is NaN, never a guess. Total on bad data: it shows, it
doesn't decide.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from penstock.core.sizing.batch_time import JobCost, StageCost, carried_rate, planned_seconds
from penstock.core.sizing.costs import fit_task_seconds, split_cost, unit_share
from penstock.model.jobs import JobSpec
from penstock.model.observations import JobWindow


@dataclass(frozen=True, slots=True)
class Standing:
    """One job now. NaN where a number is not known."""

    rate_in: float
    """Records per second taken in."""
    rate_out: float
    rate_offered: float
    """Records per second appended to its inputs."""
    capacity: float
    """Records per second that its present threads carry with D(p) <= L."""
    lag_seconds: float
    """time_lagged: backlog / rate_in; infinite when a backlog stands and nothing is taken in."""
    batch_seconds: float


def job_standing(window: JobWindow | None, backlog: float, threads: int, job: JobSpec) -> Standing:
    """How a job stands: `backlog` in records and `threads` are of now, all else is the window's."""
    rate_in = rate_out = offered = capacity = took = math.nan
    if window is not None:
        rate_in = _rate(window.records_in.values(), window.elapsed_seconds)
        rate_out = _rate(window.records_out.values(), window.elapsed_seconds)
        offered = offered_rate(job, window)
        capacity = _capacity(window, threads, job)
        took = _possible(window.batch_seconds)
    return Standing(rate_in, rate_out, offered, capacity, time_lagged(backlog, rate_in), took)


def time_lagged(backlog: float, rate_in: float) -> float:
    """Seconds that a backlog takes at the present processing rate."""
    if backlog == 0:
        return 0.0
    if not (backlog > 0 and rate_in >= 0):
        return math.nan
    return backlog / rate_in if rate_in > 0 else math.inf


def offered_rate(job: JobSpec, window: JobWindow) -> float:
    """Appended to its inputs; where that was not seen, what it took in and what its backlog grew by."""
    rates = [window.production_rates.get(topic, math.nan) for topic in job.input_topics]
    if rates and all(math.isfinite(rate) for rate in rates):
        return _possible(sum(rates))
    grown = sum(window.backlog.values()) - sum(window.backlog_before.values())
    taken = sum(window.records_in.values())
    elapsed = window.elapsed_seconds
    rate = (taken + grown) / elapsed if elapsed > 0 else math.nan
    return max(0.0, rate) if math.isfinite(rate) else math.nan


def window_cost(window: JobWindow, tasks: int) -> JobCost | None:
    """What its batches cost by this window alone; none without input or useful time, or where a number is impossible."""
    records = sum(window.records_in.values())
    useful = math.fsum(s.useful_seconds for s in window.stages if math.isfinite(s.useful_seconds))
    numbers = (records, useful, float(window.batches), window.overhead_seconds)
    if not all(math.isfinite(n) and n >= 0 for n in numbers) or not (records > 0 and useful > 0):
        return None
    stages: list[StageCost] = []
    for stage in window.stages:
        if not all(math.isfinite(n) and n >= 0 for n in (stage.useful_seconds, stage.longest_seconds)):
            return None
        shuffled = stage.ceiling is not None
        known = fit_task_seconds(stage.moments, 0.0, shuffled=shuffled) if stage.moments is not None else 0.0
        ran = float(stage.spark_tasks)
        each, own = split_cost(records, ran, stage.useful_seconds, known, shuffled=shuffled)
        share = unit_share(stage, window.batches) / max(1, tasks)
        stages.append(StageCost(each, own, stage.ceiling, share))
    return JobCost(window.overhead_seconds, tuple(stages))


def _capacity(window: JobWindow, threads: int, job: JobSpec) -> float:
    cost = window_cost(window, job.options.tasks)
    if cost is None or threads < 1:
        return math.nan
    options = job.options
    seconds, _ = planned_seconds(options.interval_seconds, options.slo_lag_seconds, cost.overhead_seconds)
    return carried_rate(cost, seconds, threads)


def _rate(counts: Iterable[float], elapsed_seconds: float) -> float:
    return _possible(sum(counts) / elapsed_seconds) if elapsed_seconds > 0 else math.nan


def _possible(value: float) -> float:
    return value if math.isfinite(value) and value >= 0 else math.nan
