"""A stage's cost per record and per Spark task, told apart by least squares over its batches.

Rules: a batch weighs 1/U, so that the slow don't outweigh the many; where batches were too alike to tell, what was
known before stands; a fit that a start-up misled is not believed. To begin with, the time of a stage that follows
threads is its records', and of a stage behind a shuffle a tenth of a second is each task's (opening and committing
state costs the same for few records as for many); a fit believes a cost of a task in the former, and of a record in
the latter, only as far as it shows beyond doubt, since noise is multiplied when demand grows tenfold. Knows sums, not
where they come from.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from penstock.model.observations import CostMoments, StageSample

RESOLUTION_SECONDS = 0.001
"""Useful time is measured in milliseconds: less weighs as one."""
SKEWED_RATIO = 1.5
"""Longest over mean Spark task of a stage that follows threads: above it, the piece is taken as unsplittable."""
LEAST_BATCHES = 3
LEAST_SPREAD = 0.02
"""Share of the squared records per task that must be spread before a cost per task can be told apart."""
SHUFFLED_TASK_SECONDS = 0.1
"""What a Spark task that keeps state in RocksDB takes whatever it carries, as measured (0.05 to 0.15 s)."""
DOUBT = 3.0
"""Standard errors, of a handful of batches, that a fitted cost is taken back by."""
SHUFFLED_RECORD_SHARE = 0.02
"""What is left to records at least behind a shuffle: never nothing, so that demand without bound needs time."""
LEAST_RECORD_SHARE = 0.1
"""A fit that leaves records less than this share of the time was misled by an accident (a start-up)."""


def fit_task_seconds(moments: CostMoments, known: float, *, shuffled: bool = False) -> float:
    """Useful seconds per Spark task by least squares (a batch weighs 1/U); `known` where batches were too alike, or
    what is usual where nothing is known. `split_cost` leaves records their share."""
    m = moments
    determinant = m.records_squared * m.tasks_squared - m.records_tasks**2
    if m.batches < LEAST_BATCHES or not determinant > LEAST_SPREAD * m.records_squared * m.tasks_squared:
        return SHUFFLED_TASK_SECONDS if shuffled and known == 0.0 else known
    per_task = (m.records_squared * m.tasks - m.records_tasks * m.records) / determinant
    per_record = (m.tasks_squared * m.records - m.records_tasks * m.tasks) / determinant
    # With weights of 1/U the squares that the fit leaves over are what it leaves over of U itself.
    left = max(0.0, m.useful_seconds - per_record * m.records - per_task * m.tasks)
    variance = left / max(1.0, m.batches - 2.0) / determinant
    if shuffled:
        beyond_doubt = per_record - DOUBT * math.sqrt(variance * m.tasks_squared)
        return (m.useful_seconds - max(0.0, beyond_doubt) * m.records) / m.tasks
    if per_task > 0 and per_record * m.records < LEAST_RECORD_SHARE * m.useful_seconds:
        return known
    return max(0.0, per_task - DOUBT * math.sqrt(variance * m.records_squared))


def split_cost(
    records: float, tasks: float, useful_seconds: float, task_seconds: float, *, shuffled: bool = False
) -> tuple[float, float]:
    """(seconds per record, per task) that together explain the useful time; tasks never explain all of it."""
    least_share = SHUFFLED_RECORD_SHARE if shuffled else LEAST_RECORD_SHARE
    most = (1 - least_share) * useful_seconds / tasks if tasks > 0 else 0.0
    per_task = min(max(0.0, task_seconds), most)
    return (useful_seconds - per_task * tasks) / records, per_task


def moments_of(rows: Iterable[tuple[float, StageSample]]) -> CostMoments:
    """Sums over batches of one stage, each given with the records its job took in."""
    least = RESOLUTION_SECONDS
    triples = [(r, float(s.spark_tasks), max(least, s.useful_seconds)) for r, s in rows]
    return CostMoments(
        batches=float(len(triples)),
        records=math.fsum(r for r, _, _ in triples),
        tasks=math.fsum(n for _, n, _ in triples),
        useful_seconds=math.fsum(u for _, _, u in triples),
        records_squared=math.fsum(r * r / u for r, _, u in triples),
        records_tasks=math.fsum(r * n / u for r, n, u in triples),
        tasks_squared=math.fsum(n * n / u for _, n, u in triples),
    )


def unit_share(stage: StageSample, batches: int) -> float:
    """Share of a stage's useful time over so many batches in its largest piece: always where its pieces are fixed,
    else only where they are skewed."""
    if not (stage.useful_seconds > 0 and stage.spark_tasks > batches > 0):
        return 0.0
    share = stage.longest_seconds * batches / stage.useful_seconds
    skewed = share * stage.spark_tasks / batches >= SKEWED_RATIO
    return min(1.0, max(0.0, share)) if stage.ceiling is not None or skewed else 0.0
