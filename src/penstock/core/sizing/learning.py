"""What jobs' batches cost, carried from window to window: rates where they are defined, the last known where not.

Rules: lambda_p = sum of records in / sum of useful time over a window (or the mean of per-instance rates, as the paper
has it); the cost of a Spark task is told apart over several windows, and a batch's overhead is smoothed over them; the
paper's strategies know neither h nor tasks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from penstock.core.sizing.columns import CostColumns
from penstock.core.sizing.costs import (
    DOUBT,
    LEAST_BATCHES,
    LEAST_RECORD_SHARE,
    LEAST_SPREAD,
    SHUFFLED_RECORD_SHARE,
    SHUFFLED_TASK_SECONDS,
    SKEWED_RATIO,
)
from penstock.core.sizing.gather import MOMENTS, Counters
from penstock.core.sizing.layout import Bools, Floats, Ints, Layout

MEMORY = 0.5
"""Weight that earlier windows keep in what is summed or smoothed, at each new one."""


@dataclass(frozen=True, slots=True, eq=False)
class Knowledge:
    """All that is known of costs and selectivities, and since when."""

    cost: CostColumns
    moments: Floats
    """Per job and stage."""
    at: Floats
    """When each job's rates were last defined; NaN: never."""
    settled: Bools
    """Whether they come from past warm-up."""
    selectivity: Floats
    """Per edge: records out per record in; NaN where never known."""
    observed: Floats
    """Per job, records in per second of the newest window, waits included."""
    imbalance: Floats
    """Per job, busiest over mean instance, of its most uneven stage."""

    @property
    def known(self) -> Bools:
        return np.isfinite(self.at)


def know_nothing(layout: Layout) -> Knowledge:
    """Before the first window."""
    n = len(layout)
    blank = np.zeros((n, 1))
    cost = CostColumns(np.zeros(n), blank, blank, np.full((n, 1), np.inf), blank)
    unknown = np.full(n, np.nan)
    return Knowledge(
        cost, np.zeros((n, 1, MOMENTS)), unknown, np.zeros(n, dtype=np.bool_),
        np.full(len(layout.edges), np.nan), unknown, unknown,
    )  # fmt: skip


def learn(
    layout: Layout, knowledge: Knowledge, new: Counters, warm: Bools, *, per_instance: bool = False
) -> Knowledge:
    """Take in new windows; those of jobs that are warming up count only where nothing better is known."""
    if not len(new.rows):
        return knowledge
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = _put(knowledge.observed, new.rows, new.records / new.elapsed)
    use = new.defined & (~warm[new.rows] | ~knowledge.settled[new.rows])
    knowledge = _widen(knowledge, 1 + int(new.stage_places.max(initial=0)))
    cost, moments, imbalance = (_learn_instances if per_instance else _learn_batches)(
        layout, knowledge, new, use, warm
    )
    rows = new.rows[use]
    return Knowledge(
        cost=cost,
        moments=moments,
        at=_put(knowledge.at, rows, new.ended_at[use]),
        settled=knowledge.settled | _mask(len(layout), rows[~warm[rows]]),
        selectivity=_selectivities(layout, knowledge.selectivity, new, use),
        observed=observed,
        imbalance=_put(knowledge.imbalance, rows, imbalance[use]),
    )


def _learn_batches(
    layout: Layout, knowledge: Knowledge, new: Counters, use: Bools, warm: Bools
) -> tuple[CostColumns, Floats, Floats]:
    kept = use[new.stage_rows]
    position, place = new.stage_rows[kept], new.stage_places[kept]
    job = new.rows[position]
    before, cost = knowledge.moments, knowledge.cost
    # Warm-up windows count here: batches of other sizes are what tells the two costs apart (cold ones are left out).
    sums = new.moments[kept] + MEMORY * before[job, place]
    useful, tasks, batches = new.useful[kept], new.tasks[kept], new.batches[position]
    per_task = _task_seconds(sums, cost.task[job, place], np.isfinite(new.ceiling[kept]))
    with np.errstate(divide="ignore", invalid="ignore"):
        least_share = np.where(np.isfinite(new.ceiling[kept]), SHUFFLED_RECORD_SHARE, LEAST_RECORD_SHARE)
        most = np.where(tasks > 0, (1 - least_share) * useful / tasks, 0.0)
        per_task = np.minimum(np.maximum(0.0, per_task), most)
        per_record = (useful - per_task * tasks) / new.records[position]
        unit, imbalance = _units(layout, new, kept, job, batches)
    rows = np.flatnonzero(_mask(len(layout), job))
    emptied = _emptied(cost, rows)
    return (
        CostColumns(
            _put(cost.overhead, rows, _overhead(knowledge, _by_job(new, use, new.overhead, rows), rows)),
            _put2(emptied.record, job, place, per_record),
            _put2(emptied.task, job, place, per_task),
            _put2(emptied.ceiling, job, place, new.ceiling[kept]),
            _put2(emptied.unit, job, place, unit),
        ),
        _put2(before, job, place, sums),
        imbalance,
    )


def _overhead(knowledge: Knowledge, new: Floats, rows: Ints) -> Floats:
    """h scatters from window to window more than what a record costs does: earlier ones keep their weight in it."""
    before = knowledge.cost.overhead[rows]
    return np.where(knowledge.settled[rows], MEMORY * before + (1 - MEMORY) * new, new)


def _learn_instances(
    layout: Layout, knowledge: Knowledge, new: Counters, use: Bools, warm: Bools
) -> tuple[CostColumns, Floats, Floats]:
    """Per stage 1 / lambda_p from the mean of its instances' rates, times the records that reach it per record in."""
    kept = use[new.stage_rows]
    position, place = new.stage_rows[kept], new.stage_places[kept]
    job, cost = new.rows[position], knowledge.cost
    with np.errstate(divide="ignore", invalid="ignore"):
        total = new.stage_records[kept] / new.useful[kept]
        rate = np.where(new.mean_rate[kept] > 0, new.mean_rate[kept], total)
        reaching = new.stage_records[kept] / new.records[position]
        own = np.where((rate > 0) & (reaching > 0), reaching / rate, new.useful[kept] / new.records[position])
        _, imbalance = _units(layout, new, kept, job, new.batches[position])
    emptied = _emptied(cost, np.unique(job))
    kept_cost = replace(cost, record=_put2(emptied.record, job, place, own))
    return kept_cost, knowledge.moments, imbalance


def _task_seconds(sums: Floats, known: Floats, shuffled: Bools) -> Floats:
    """`costs.fit_task_seconds` over columns."""
    batches, records, tasks, useful, rr, rn, nn = sums.T
    determinant = rr * nn - rn**2
    with np.errstate(divide="ignore", invalid="ignore"):
        per_task = (rr * tasks - rn * records) / determinant
        per_record = (nn * records - rn * tasks) / determinant
        left = np.maximum(0.0, useful - per_record * records - per_task * tasks)
        variance = left / np.maximum(1.0, batches - 2.0) / determinant
        clear = (batches >= LEAST_BATCHES) & (determinant > LEAST_SPREAD * rr * nn)
        of_tasks = (useful - np.maximum(0.0, per_record - DOUBT * np.sqrt(variance * nn)) * records) / tasks
        misled = (per_task > 0) & (per_record * records < LEAST_RECORD_SHARE * useful)
        own = np.where(misled, known, np.maximum(0.0, per_task - DOUBT * np.sqrt(variance * rr)))
    at_first = np.where(shuffled & (known == 0.0), SHUFFLED_TASK_SECONDS, known)
    return np.where(clear, np.where(shuffled, of_tasks, own), at_first)


def _units(layout: Layout, new: Counters, kept: Bools, job: Ints, batches: Floats) -> tuple[Floats, Floats]:
    """(share of the largest unsplittable piece per stage kept, imbalance per row)."""
    useful, tasks = new.useful[kept], new.tasks[kept]
    mean_tasks = tasks / batches
    share = new.longest[kept] * batches / useful
    skewed = share * mean_tasks >= SKEWED_RATIO
    piece = (mean_tasks > 1) & (np.isfinite(new.ceiling[kept]) | skewed)
    unit = np.where(piece & np.isfinite(share), np.clip(share, 0.0, 1.0) / layout.tasks[job], 0.0)
    uneven = np.full(len(new.rows), np.nan)
    np.fmax.at(uneven, new.stage_rows, new.imbalance)
    return unit, uneven


def _selectivities(layout: Layout, before: Floats, new: Counters, use: Bools) -> Floats:
    if not len(new.edge_rows):
        return before
    place = np.full(len(layout), -1, dtype=np.int64)
    place[new.rows] = np.arange(len(new.rows))
    position = place[layout.edge_jobs[new.edge_rows]]
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = new.edge_records / new.records[position]
    good = use[position] & np.isfinite(ratio) & (ratio >= 0)
    return _put(before, new.edge_rows[good], ratio[good])


def _by_job(new: Counters, use: Bools, values: Floats, rows: Ints) -> Floats:
    place = np.zeros(int(new.rows.max(initial=0)) + 1, dtype=np.int64)
    place[new.rows[use]] = np.flatnonzero(use)
    return values[place[rows]]


def _emptied(cost: CostColumns, rows: Ints) -> CostColumns:
    """The same without these jobs' stages: they may have fewer now."""
    parts = (cost.record, cost.task, cost.ceiling, cost.unit)
    record, task, ceiling, unit = (part.copy() for part in parts)
    record[rows] = task[rows] = unit[rows] = 0.0
    ceiling[rows] = np.inf
    return CostColumns(cost.overhead, record, task, ceiling, unit)


def _widen(knowledge: Knowledge, stages: int) -> Knowledge:
    more = stages - knowledge.cost.record.shape[1]
    if more <= 0:
        return knowledge
    cost = knowledge.cost
    pad = ((0, 0), (0, more))
    return replace(
        knowledge,
        cost=CostColumns(
            cost.overhead,
            np.pad(cost.record, pad),
            np.pad(cost.task, pad),
            np.pad(cost.ceiling, pad, constant_values=np.inf),
            np.pad(cost.unit, pad),
        ),
        moments=np.pad(knowledge.moments, (*pad, (0, 0))),
    )


def _put(values: Floats, rows: Ints, new: Floats) -> Floats:
    changed = values.copy()
    changed[rows] = new
    return changed


def _put2(values: Floats, rows: Ints, places: Ints, new: Floats) -> Floats:
    changed = values.copy()
    changed[rows, places] = new
    return changed


def _mask(size: int, rows: Ints) -> Bools:
    mask = np.zeros(size, dtype=np.bool_)
    mask[rows] = True
    return mask
