"""How much the next micro-batch may hold: the largest with D(p) <= L, from what batches cost so far.

Rules: a small first batch; no batch more than twice the largest one seen (per thread) unless even the dearest reading
of what was measured allows it; one odd batch (start-up of workers, a collection of garbage) is set aside, two in a row
are a change; a limit is never below 1. Knows batches, not topics: the owner's own limits are applied elsewhere.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.sizing.batch_time import (
    JobCost,
    StageCost,
    largest_batch,
    objective_seconds,
)
from penstock.core.sizing.costs import SKEWED_RATIO, fit_task_seconds, moments_of, split_cost
from penstock.model.observations import BatchSample, StageSample

FIRST_BATCH_RECORDS = 100
KEPT_BATCHES = 8
ODD_RATIO = 1.5
"""A batch that takes this many times what was predicted, or this little, is odd."""
OVERHEAD_SHARE_MOST = 0.5
OVERHEAD_MULTIPLE = 4.0
"""Where overhead would take more than the first share of L, a batch may last this many overheads, up to half the lag
that its owner accepts (batches then run back to back: a record waits for one and is in the next): else nothing moves."""
LEAST_ROOM_SHARE = 0.25
"""Of an objective that the overhead fills whole, this share may still be worked."""


@dataclass(frozen=True, slots=True)
class _Batch:
    records: float
    threads: int
    overhead_seconds: float
    stage_seconds: float
    stages: tuple[StageSample, ...]


@dataclass(frozen=True, slots=True)
class Admission:
    """What one task's batches taught so far."""

    kept: tuple[_Batch, ...] = ()
    odd: _Batch | None = None
    """The newest batch, when it fits nothing seen before."""
    newest: tuple[int, int] = (-1, -1)
    """(generation, batch id) of the newest batch: older and doubled ones teach nothing."""
    cost: JobCost | None = None
    dearest: JobCost | None = None
    """The same with all time laid on records: never too cheap for a larger batch."""
    stretch: float = 1.0
    """Elapsed over predicted stage time at `stretch_threads`: waiting for slots, uneven starts."""
    stretch_threads: int = 0
    seconds: float = math.nan
    """L."""
    seconds_most: float = math.nan
    """The longest batch that still keeps to the lag objective when batches run back to back."""


def observe_batch(
    admission: Admission, sample: BatchSample, interval_seconds: float, slo_lag_seconds: float
) -> Admission:
    """Learn from one committed batch; samples that are late, doubled, empty or impossible change nothing."""
    batch = _read(sample)
    place = (sample.generation, sample.batch_id)
    if batch is None or place <= admission.newest:
        return admission
    kept, odd = _keep(admission, batch)
    cost, dearest = _estimate(kept, admission.cost)
    alike = [_stretch(b, cost) for b in kept if b.threads == batch.threads]
    return Admission(
        kept=kept,
        odd=odd,
        newest=place,
        cost=cost,
        dearest=dearest,
        stretch=max(1.0, statistics.median_low([1.0, *alike])),
        stretch_threads=batch.threads,
        seconds=_room(interval_seconds, slo_lag_seconds),
        seconds_most=slo_lag_seconds / 2,
    )


def limit_records(admission: Admission, threads: int) -> int | None:
    """Most records of the next batch at so many threads."""
    threads = max(1, threads)
    cost, dearest = admission.cost, admission.dearest
    if cost is None or dearest is None:
        return FIRST_BATCH_RECORDS
    seen = max(b.records * threads / b.threads for b in admission.kept)
    safe = _fitting(dearest, admission, threads)
    grown = max(2.0 * seen, safe)
    return max(1, int(min(_fitting(cost, admission, threads), grown)))


def _fitting(cost: JobCost, admission: Admission, threads: int) -> float:
    stretch = admission.stretch if threads == admission.stretch_threads else 1.0
    whole, overhead = admission.seconds, cost.overhead_seconds
    if overhead > OVERHEAD_SHARE_MOST * whole:
        whole = max(whole, min(OVERHEAD_MULTIPLE * overhead, admission.seconds_most))
    room = max(whole - overhead, LEAST_ROOM_SHARE * whole)
    return largest_batch(JobCost(0.0, cost.stages), room / stretch, threads)


def _room(interval_seconds: float, slo_lag_seconds: float) -> float:
    seconds = objective_seconds(interval_seconds, slo_lag_seconds)
    return seconds if seconds > 0 else interval_seconds


def _read(sample: BatchSample) -> _Batch | None:
    """A batch as it counts here; none when it was empty or a number is missing or impossible."""
    records = sum(sample.records_in.values())
    if not (math.isfinite(records) and records >= 1 and sample.threads >= 1):
        return None
    times = (sample.duration_seconds, sample.stage_seconds)
    if not all(math.isfinite(t) and t >= 0 for t in times):
        return None
    stages = tuple(s for s in sample.stages if s.spark_tasks > 0)
    good = all(
        math.isfinite(s.useful_seconds) and s.useful_seconds >= 0 and math.isfinite(s.longest_seconds)
        for s in stages
    )
    if not good or not sum(s.useful_seconds for s in stages) > 0:
        return None
    return _Batch(records, sample.threads, sample.overhead_seconds, sample.stage_seconds, stages)


def _keep(admission: Admission, batch: _Batch) -> tuple[tuple[_Batch, ...], _Batch | None]:
    """(batches to learn from, the odd one): two odd ones in a row, to the same side, drop all before them."""
    kept, cost = admission.kept, admission.cost
    if not kept or cost is None:
        return (batch,), None
    side = _side(batch, kept, cost)
    if side == 0:
        return (*kept, batch)[-KEPT_BATCHES:], None
    if side < 0 and len(kept) == 1:
        return (batch,), None
    odd = admission.odd
    if odd is not None and _side(odd, kept, cost) == side and len(odd.stages) == len(batch.stages):
        return (odd, batch), None
    return kept, batch


def _side(batch: _Batch, kept: Sequence[_Batch], cost: JobCost) -> int:
    """1 when a batch took far more than predicted, -1 far less, 0 when it fits."""
    if len(batch.stages) != len(kept[-1].stages):
        return 1
    useful = sum(s.useful_seconds for s in batch.stages)
    expected = sum(s.useful_seconds(batch.records, batch.threads) for s in cost.stages)
    if useful > ODD_RATIO * expected:
        return 1
    return -1 if useful * ODD_RATIO < expected else 0


def _estimate(kept: Sequence[_Batch], before: JobCost | None) -> tuple[JobCost, JobCost]:
    overhead = statistics.median(b.overhead_seconds for b in kept)
    known = [s.task_seconds for s in before.stages] if before is not None else []
    stages: list[StageCost] = []
    dearest: list[StageCost] = []
    for i in range(len(kept[-1].stages)):
        rows = [(b.records, b.stages[i]) for b in kept]
        m = moments_of(rows)
        ceiling = rows[-1][1].ceiling
        # Behind a shuffle too, what is not known to be a task's counts as its records': a batch grows with care.
        per_task = fit_task_seconds(m, known[i] if i < len(known) else 0.0)
        per_record, per_task = split_cost(m.records, m.tasks, m.useful_seconds, per_task)
        unit = _unit_share([s for _, s in rows])
        stages.append(StageCost(per_record, per_task, ceiling, unit))
        dearest.append(StageCost(m.useful_seconds / m.records, 0.0, ceiling, unit))
    return JobCost(overhead, tuple(stages)), JobCost(overhead, tuple(dearest))


def _unit_share(stages: Sequence[StageSample]) -> float:
    """Share of the stage's time in its largest piece: always where its pieces are fixed, else only when skewed."""
    shares = [
        s.longest_seconds / s.useful_seconds for s in stages if s.useful_seconds > 0 and s.spark_tasks > 1
    ]
    if not shares:
        return 0.0
    share = min(1.0, max(0.0, statistics.median(shares)))
    tasks = statistics.median(s.spark_tasks for s in stages if s.spark_tasks > 1)
    skewed = share * tasks >= SKEWED_RATIO
    return share if skewed or stages[-1].ceiling is not None else 0.0


def _stretch(batch: _Batch, cost: JobCost) -> float:
    """Elapsed over predicted stage time of one batch, its own useful time given."""
    expected = sum(
        cost.stages[i].time_share(batch.threads) * s.useful_seconds for i, s in enumerate(batch.stages)
    )
    return batch.stage_seconds / expected if expected > 0 else 1.0
