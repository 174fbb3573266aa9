"""How long a micro-batch takes, how much one may hold, and how many threads a demand needs: the batch-time formula.

    D(p) = h + sum over stages of max(U(p) / width, unit)
    U(p) = records x cost per record + Spark tasks x cost per task
    width = p where the stage follows the plan, m where its Spark tasks are fixed (state partitions)
    unit = its share of the records' part of U, and its Spark tasks' own cost

Rules: stages run one after another; threads cap what follows the plan and nothing else: a stage of m fixed Spark tasks
runs m abreast whatever p is; a piece that can't be split is a share of its stage's useful time. D never rises with p,
so the least sufficient p is found by halving. Plain floats, one job at a time: `columns.py` does the same for a whole
fleet, and tests hold them equal.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from penstock.model.decisions import Limit

MOST_THREADS = 1 << 20
"""Where "any number of threads" ends."""
ROUNDING = 1e-9
"""Sums of the same numbers in another order may differ by less than this share."""
FLAT_SHARE = 0.01
"""When no number of threads suffices, the least that comes this close to the best batch time is as good as any."""


@dataclass(frozen=True, slots=True)
class StageCost:
    """What one stage costs, whatever the size of a batch."""

    record_seconds: float
    """Useful seconds for each record that the job takes in."""
    task_seconds: float = 0.0
    """Useful seconds for each Spark task, whatever it carries."""
    ceiling: int | None = None
    """m: its Spark tasks where they are fixed; none where it follows threads."""
    unit_share: float = 0.0
    """Share of its useful time that its largest unsplittable piece takes."""

    def useful_seconds(self, records: float, threads: int) -> float:
        """U at this many threads."""
        tasks = threads if self.ceiling is None else self.ceiling
        return self.record_seconds * records + self.task_seconds * tasks

    def time_share(self, threads: int) -> float:
        """Elapsed seconds for each useful second spent on records."""
        return max(1.0 / self._abreast(threads), self.unit_share)

    def elapsed_seconds(self, records: float, threads: int) -> float:
        """max(U / width, unit)."""
        tasks = threads if self.ceiling is None else self.ceiling
        own = self.task_seconds * tasks / self._abreast(threads)
        return self.time_share(threads) * self.record_seconds * records + own

    def _abreast(self, threads: int) -> int:
        return max(1, threads if self.ceiling is None else self.ceiling)


@dataclass(frozen=True, slots=True)
class JobCost:
    """What a job's batches cost."""

    overhead_seconds: float
    """h."""
    stages: tuple[StageCost, ...]


@dataclass(frozen=True, slots=True)
class Need:
    """Threads that suffice, or the best there is with the name of what stands in the way."""

    threads: int
    limit: Limit
    batch_seconds: float


def objective_seconds(interval_seconds: float, slo_lag_seconds: float) -> float:
    """L: a record waits up to one interval, then one batch; not above zero when the two don't fit."""
    if interval_seconds > 0:
        return min(interval_seconds, slo_lag_seconds - interval_seconds)
    return slo_lag_seconds / 2


def planned_seconds(
    interval_seconds: float, slo_lag_seconds: float, overhead_seconds: float
) -> tuple[float, bool]:
    """(the L to size for, whether the lag objective leaves room for it): the interval where S <= I + h."""
    feasible = slo_lag_seconds > interval_seconds + overhead_seconds
    return objective_seconds(interval_seconds, slo_lag_seconds) if feasible else interval_seconds, feasible


def batch_seconds(cost: JobCost, records: float, threads: int) -> float:
    """D(p) of a batch of so many records."""
    return cost.overhead_seconds + math.fsum(s.elapsed_seconds(records, threads) for s in cost.stages)


def largest_batch(cost: JobCost, seconds: float, threads: int) -> float:
    """Most records with D(p) <= seconds; below zero when not even an empty batch fits, infinite when records cost nothing."""
    per_record = math.fsum(s.time_share(threads) * s.record_seconds for s in cost.stages)
    room = seconds - batch_seconds(cost, 0.0, threads)
    if per_record > 0:
        return room / per_record
    return math.inf if room >= 0 else -math.inf


def carried_rate(cost: JobCost, seconds: float, threads: int) -> float:
    """Records per second that `threads` carry when a batch of L seconds of demand may take L seconds."""
    return max(0.0, largest_batch(cost, seconds, threads)) / seconds if seconds > 0 else 0.0


def threads_for(cost: JobCost, rate_per_second: float, seconds: float) -> Need:
    """The least threads with D(p) <= L for L seconds of demand; none: the limit's name and the best there is."""
    records = max(0.0, rate_per_second) * seconds
    best = batch_seconds(cost, records, MOST_THREADS)
    if best <= seconds * (1 + ROUNDING):
        threads = _least(cost, records, seconds * (1 + ROUNDING))
        return Need(threads, "none", batch_seconds(cost, records, threads))
    limit = _name_limit(cost, records, seconds)
    if limit == "overhead-bound":
        bare = JobCost(0.0, tuple(StageCost(s.record_seconds, 0.0, s.ceiling) for s in cost.stages))
        goal = max(seconds, batch_seconds(bare, records, MOST_THREADS) * (1 + FLAT_SHARE))
        threads = _least(bare, records, goal)
    else:
        threads = _least(cost, records, best * (1 + FLAT_SHARE))
    return Need(threads, limit, batch_seconds(cost, records, threads))


def _least(cost: JobCost, records: float, seconds: float) -> int:
    low, high = 1, MOST_THREADS
    while low < high:
        middle = (low + high) // 2
        if batch_seconds(cost, records, middle) <= seconds:
            high = middle
        else:
            low = middle + 1
    return low


def _name_limit(cost: JobCost, records: float, seconds: float) -> Limit:
    """What would have to go for some number of threads to suffice, the cheapest to mend first."""
    even = JobCost(
        cost.overhead_seconds,
        tuple(StageCost(s.record_seconds, s.task_seconds, s.ceiling) for s in cost.stages),
    )
    if cost.overhead_seconds >= seconds:
        return "overhead-bound"
    if batch_seconds(even, records, MOST_THREADS) <= seconds * (1 + ROUNDING):
        return "hot unit"
    free = JobCost(
        cost.overhead_seconds, tuple(StageCost(s.record_seconds, s.task_seconds) for s in cost.stages)
    )
    if batch_seconds(free, records, MOST_THREADS) <= seconds * (1 + ROUNDING):
        return "state partitions"
    return "overhead-bound"
