"""The batch-time formula for many jobs at once: the same numbers as `batch_time.py`, in a few passes over arrays.

Rows are jobs, columns of the second axis are stages; a stage that a job doesn't have costs nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from penstock.core.sizing.batch_time import FLAT_SHARE, MOST_THREADS, ROUNDING, JobCost, StageCost
from penstock.core.sizing.layout import Floats, Ints
from penstock.model.decisions import Limit

LIMITS: tuple[Limit, ...] = (
    "none",
    "overhead-bound",
    "hot unit",
    "state partitions",
    "infeasible interval",
    "max_threads",
    "min_threads",
    "partitions",
    "slots",
    "unscalable",
    "set aside",
)
LIMIT: dict[Limit, int] = {name: i for i, name in enumerate(LIMITS)}


@dataclass(frozen=True, slots=True, eq=False)
class CostColumns:
    """What batches cost, by job and stage."""

    overhead: Floats
    """h, by job."""
    record: Floats
    """Seconds per record, by job and stage."""
    task: Floats
    """Seconds per Spark task."""
    ceiling: Floats
    """m; infinite where a stage follows threads."""
    unit: Floats
    """Share of the largest unsplittable piece."""

    def take(self, rows: Ints) -> CostColumns:
        """Some jobs only."""
        return CostColumns(
            self.overhead[rows], self.record[rows], self.task[rows], self.ceiling[rows], self.unit[rows]
        )

    def job(self, row: int) -> JobCost:
        """One job's cost as a plain value, without stages that it doesn't have."""
        stages = zip(self.record[row], self.task[row], self.ceiling[row], self.unit[row], strict=True)
        return JobCost(
            float(self.overhead[row]),
            tuple(
                StageCost(float(c), float(d), int(m) if np.isfinite(m) else None, float(u))
                for c, d, m, u in stages
                if c > 0 or d > 0
            ),
        )


def columns_of(costs: tuple[JobCost, ...]) -> CostColumns:
    """Plain costs as columns."""
    width = max((len(cost.stages) for cost in costs), default=0)
    shape = (len(costs), max(1, width))
    record, task, unit = np.zeros(shape), np.zeros(shape), np.zeros(shape)
    ceiling = np.full(shape, np.inf)
    for i, cost in enumerate(costs):
        for s, stage in enumerate(cost.stages):
            record[i, s], task[i, s], unit[i, s] = stage.record_seconds, stage.task_seconds, stage.unit_share
            ceiling[i, s] = np.inf if stage.ceiling is None else stage.ceiling
    return CostColumns(np.array([c.overhead_seconds for c in costs]), record, task, ceiling, unit)


def batch_times(cost: CostColumns, records: Floats, threads: Floats) -> Floats:
    """D(p) of each job's batch."""
    # Each of a stage's Spark tasks runs abreast of the others, so its own cost is waited for once.
    stages = _time_share(cost, threads) * cost.record * records[:, None] + cost.task
    return cost.overhead + np.sum(stages, axis=1)


def _time_share(cost: CostColumns, threads: Floats) -> Floats:
    """Elapsed seconds for each useful second spent on records."""
    width = np.where(np.isinf(cost.ceiling), np.maximum(1.0, threads[:, None]), cost.ceiling)
    return np.maximum(1.0 / width, cost.unit)


def carried_rates(cost: CostColumns, seconds: Floats, threads: Floats) -> Floats:
    """Records per second that each job's threads carry by D(p) <= L."""
    per_record = np.sum(_time_share(cost, threads) * cost.record, axis=1)
    room = seconds - batch_times(cost, np.zeros_like(seconds), threads)
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(per_record > 0, np.maximum(0.0, room) / (per_record * seconds), np.inf)
    return np.where((per_record <= 0) & (room < 0), 0.0, rate)


def needed_threads(cost: CostColumns, records: Floats, seconds: Floats) -> tuple[Ints, Ints]:
    """(least threads with D(p) <= L, code of the limit); where none suffices, the best there is."""
    threads = _guess(cost, records, seconds)
    inside = (threads >= 1) & (threads < MOST_THREADS)
    tried = np.where(inside, threads, 1.0)
    goal = seconds * (1 + ROUNDING)
    exact = inside & (batch_times(cost, records, tried) <= goal)
    exact &= (tried == 1) | (batch_times(cost, records, np.maximum(1.0, tried - 1)) > goal)
    limit = np.zeros(len(records), dtype=np.int64)
    result = tried.astype(np.int64)
    rest = np.flatnonzero(~exact)
    if len(rest):
        result[rest], limit[rest] = _search(cost.take(rest), records[rest], seconds[rest])
    return result, limit


def _guess(cost: CostColumns, records: Floats, seconds: Floats) -> Floats:
    """The answer where no unit binds: U / (L - h), with fixed stages and what a task costs taken off."""
    fixed = np.isfinite(cost.ceiling)
    work = cost.record * records[:, None]
    divided = np.sum(np.where(fixed, 0.0, work), axis=1)
    waited = np.where(fixed, np.maximum(1.0 / cost.ceiling, cost.unit) * work, 0.0) + cost.task
    steady = cost.overhead + np.sum(waited, axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        guess = np.ceil(divided / (seconds - steady) * (1 - ROUNDING))
    return np.where(steady < seconds, np.maximum(1.0, guess), -1.0)


def _search(cost: CostColumns, records: Floats, seconds: Floats) -> tuple[Ints, Ints]:
    most = np.full(len(records), float(MOST_THREADS))
    best = batch_times(cost, records, most)
    enough = best <= seconds * (1 + ROUNDING)
    limit = np.where(enough, 0, _limits(cost, records, seconds, most))
    bound = limit == LIMIT["overhead-bound"]
    flat = CostColumns(
        np.where(bound, 0.0, cost.overhead),
        cost.record,
        np.where(bound[:, None], 0.0, cost.task),
        cost.ceiling,
        np.where(bound[:, None], 0.0, cost.unit),
    )
    flat_best = np.maximum(np.where(bound, seconds, 0.0), batch_times(flat, records, most) * (1 + FLAT_SHARE))
    goal = np.where(enough, seconds * (1 + ROUNDING), flat_best)
    low, high = np.ones(len(records)), most
    while np.any(low < high):
        middle = np.floor((low + high) / 2)
        fits = batch_times(flat, records, middle) <= goal
        low, high = np.where(fits, low, middle + 1), np.where(fits, middle, high)
        low = np.minimum(low, high)
    return low.astype(np.int64), limit


def _limits(cost: CostColumns, records: Floats, seconds: Floats, most: Floats) -> Ints:
    """What stands in the way, the cheapest to mend first."""
    even = CostColumns(cost.overhead, cost.record, cost.task, cost.ceiling, np.zeros_like(cost.unit))
    free = CostColumns(cost.overhead, cost.record, cost.task, np.full_like(cost.ceiling, np.inf), even.unit)
    goal = seconds * (1 + ROUNDING)
    limit = np.full(len(records), LIMIT["overhead-bound"], dtype=np.int64)
    limit = np.where(batch_times(free, records, most) <= goal, LIMIT["state partitions"], limit)
    limit = np.where(batch_times(even, records, most) <= goal, LIMIT["hot unit"], limit)
    return np.where(cost.overhead >= seconds, LIMIT["overhead-bound"], limit)
