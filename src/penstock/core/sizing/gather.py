"""Reads the newest windows of all jobs into columns, in one pass, and says whose numbers can't be used.

Rules: a window that was seen before is no news; a number that is missing or impossible, an end in the future among
them, sets its job aside, with its name, and no other; no input or no useful time leaves rates undefined, which is not
a fault. What a window says of itself is a row of numbers since it closed; what all instances say is read here.
"""

from __future__ import annotations

import math
from array import array
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.core.sizing.costs import RESOLUTION_SECONDS
from penstock.core.sizing.layout import Bools, Floats, Ints, Layout
from penstock.core.sizing.windows import AHEAD_SECONDS
from penstock.model.observations import (
    STAGE_FACTS,
    WINDOW_FACTS,
    JobWindow,
    Observation,
)

END = WINDOW_FACTS.index("end")
CHECKED, CHECKED_OF_STAGE = WINDOW_FACTS.index("growing"), STAGE_FACTS.index("ceiling")
"""Facts before these are numbers that must be there and possible."""
INSTANCES = STAGE_FACTS.index("instances")
MOMENTS = len(STAGE_FACTS) - INSTANCES - 1


@dataclass(frozen=True, slots=True, eq=False)
class Counters:
    """What is new. `rows` are jobs; the first axis of the other arrays follows `rows`, or `stage_rows`."""

    rows: Ints
    records: Floats
    elapsed: Floats
    ended_at: Floats
    threads: Ints
    batches: Floats
    overhead: Floats
    backlog: Floats
    backlog_before: Floats
    defined: Bools
    """Whether it took records in and spent useful time on them."""
    growing: Bools
    """Whether its batches were held small while admission learnt."""
    edge_rows: Ints
    """Per edge of these jobs, its number and the records written."""
    edge_records: Floats
    stage_rows: Ints
    """Per stage, the position in `rows` and the place among the job's stages."""
    stage_places: Ints
    useful: Floats
    tasks: Floats
    longest: Floats
    stage_records: Floats
    ceiling: Floats
    moments: Floats
    """Per stage, the seven sums of `CostMoments`."""
    imbalance: Floats
    """Per stage, its busiest instance's useful time over the mean of all; NaN where there is one or none."""
    mean_rate: Floats
    """Per stage, the mean over instances of records in per useful second (the paper's Eq. 5); NaN where undefined."""


def gather_counters(
    layout: Layout, observation: Observation, seen_until: Floats, *, now: float, rates: bool = True
) -> tuple[Counters, dict[int, str]]:
    """Columns of all windows that are news, and per job that is set aside the number that was wrong."""
    rows, windows = _find_news(layout, observation, seen_until)
    table, stage_rows, stage_places, stages = _read_facts(windows)
    found = _read_instances(windows, stages[:, INSTANCES].astype(np.int64), rates=rates)
    bad = _find_bad(rows, table, stages, stage_rows, found.torn)
    bad.update(_find_ahead(rows, table[:, END], now))
    ended_at = np.where(table[:, END] <= now + AHEAD_SECONDS, table[:, END], np.nan)
    good = ~np.isin(rows, list(bad)) if bad else np.ones(len(rows), dtype=np.bool_)
    useful = np.bincount(stage_rows, weights=stages[:, 0], minlength=len(rows))
    with np.errstate(invalid="ignore"):
        defined = good & (table[:, 0] > 0) & (useful > 0) & (table[:, 1] > 0) & (table[:, 4] > 0)
    edge_rows, edge_records = _read_edges(layout, rows, windows)
    counters = Counters(
        rows=rows, records=table[:, 0], elapsed=table[:, 1], ended_at=ended_at,
        threads=np.nan_to_num(table[:, 3]).astype(np.int64), batches=table[:, 4], overhead=table[:, 5],
        backlog=table[:, 6], backlog_before=table[:, 7], defined=defined, growing=table[:, 8] > 0,
        edge_rows=edge_rows, edge_records=edge_records, stage_rows=stage_rows, stage_places=stage_places,
        useful=stages[:, 0], tasks=stages[:, 1], longest=stages[:, 2], stage_records=stages[:, 3],
        ceiling=stages[:, 4], moments=_moments(table[:, 0][stage_rows], stages),
        imbalance=found.imbalance, mean_rate=found.mean_rate,
    )  # fmt: skip
    return counters, bad


def _find_news(layout: Layout, observation: Observation, seen_until: Floats) -> tuple[Ints, list[JobWindow]]:
    """(jobs with a window that was not seen before, those windows)."""
    held = map(observation.windows.get, layout.names)
    news = [
        (row, window)
        for row, (window, seen) in enumerate(zip(held, seen_until.tolist(), strict=True))
        if window is not None and not window.ended_at <= seen
    ]
    return np.array([row for row, _ in news], dtype=np.int64), [window for _, window in news]


def _read_facts(windows: list[JobWindow]) -> tuple[Floats, Ints, Ints, Floats]:
    """(facts of each window; of each stage the position of its window, its place there, and its facts)."""
    packs = [window.facts for window in windows]
    lengths = np.fromiter(map(len, packs), np.int64, len(packs))
    flat = _joined(packs)
    places = (np.cumsum(lengths) - lengths)[:, None] + np.arange(len(WINDOW_FACTS))
    of_stages = np.ones(len(flat), dtype=np.bool_)
    of_stages[places] = False
    counts = (lengths - len(WINDOW_FACTS)) // len(STAGE_FACTS)
    rows = np.repeat(np.arange(len(packs)), counts)
    stage_places = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return flat[places], rows, stage_places, flat[of_stages].reshape(-1, len(STAGE_FACTS))


def _read_edges(layout: Layout, rows: Ints, windows: list[JobWindow]) -> tuple[Ints, Floats]:
    """(edges of these jobs, the records written to each; NaN where that was not told)."""
    position = np.full(len(layout), -1, dtype=np.int64)
    position[rows] = np.arange(len(rows))
    places = position[layout.edge_jobs]
    edges = np.flatnonzero(places >= 0)
    pairs: list[tuple[int, int]] = np.stack([edges, places[edges]], axis=1).tolist()
    labels, missing = layout.edges, math.nan
    written = [windows[k].records_out.get(labels[e][1], missing) for e, k in pairs]
    return edges, np.array(written, dtype=np.float64)


def _moments(records: Floats, stages: Floats) -> Floats:
    """The sums of `CostMoments`; a stage of a window without them is taken as one batch."""
    moments = stages[:, -MOMENTS:]
    lacking = np.isnan(moments[:, 0])
    if not lacking.any():
        return moments
    r, n, u = records, stages[:, 1], np.maximum(RESOLUTION_SECONDS, stages[:, 0])
    one = np.stack([np.ones_like(r), r, n, u, r * r / u, r * n / u, n * n / u], axis=1)
    return np.where(lacking[:, None], one, moments)


def _find_bad(rows: Ints, table: Floats, stages: Floats, stage_rows: Ints, torn: Bools) -> dict[int, str]:
    table, stages = table[:, :CHECKED], stages[:, :CHECKED_OF_STAGE]
    with np.errstate(invalid="ignore"):
        wrong = ~(np.isfinite(table) & (table >= 0))
        wrong_stage = ~(np.isfinite(stages) & (stages >= 0))
    bad: dict[int, str] = {}
    for position in np.flatnonzero(torn).tolist():
        bad[int(rows[stage_rows[position]])] = "a number of one of its instances is missing or below zero"
    for position, column in np.argwhere(wrong_stage).tolist():
        text = f"{STAGE_FACTS[column]} = {stages[position, column]:g} of a stage"
        bad[int(rows[stage_rows[position]])] = text
    for position, column in np.argwhere(wrong).tolist():
        bad[int(rows[position])] = f"{WINDOW_FACTS[column]} = {table[position, column]:g}"
    return bad


def _find_ahead(rows: Ints, ended_at: Floats, now: float) -> dict[int, str]:
    """Windows that end later than can be: were one believed, nothing after it would be news."""
    ahead = np.flatnonzero(ended_at > now + AHEAD_SECONDS).tolist()
    return {int(rows[k]): f"its window ends {ended_at[k] - now:.6g} s from now" for k in ahead}


@dataclass(frozen=True, slots=True, eq=False)
class _Instances:
    """What the instances of each stage say."""

    imbalance: Floats
    mean_rate: Floats
    torn: Bools
    """Whether a number is missing or below zero."""


def _read_instances(windows: list[JobWindow], counts: Ints, *, rates: bool) -> _Instances:
    """All instances in one pass, so many of each stage; without `rates` their mean is left out."""
    imbalance, mean_rate = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    torn = np.zeros(len(counts), dtype=np.bool_)
    some = np.flatnonzero(counts)
    if not len(some):
        return _Instances(imbalance, mean_rate, torn)
    flat, each = _joined([window.instance_facts for window in windows]), counts[some]
    lengths = np.repeat(each, 2)  # of each stage the useful seconds, then the records
    starts = np.cumsum(lengths) - lengths
    with np.errstate(divide="ignore", invalid="ignore"):
        sums, least = np.add.reduceat(flat, starts), np.minimum.reduceat(flat, starts)
        imbalance[some] = np.maximum.reduceat(flat, starts)[::2] * each / sums[::2]
        if rates:
            of_time = np.repeat(np.arange(len(lengths)) % 2 == 0, lengths)
            speeds = flat[~of_time] / flat[of_time]
            busy, begin = np.isfinite(speeds), np.cumsum(each) - each
            total = np.add.reduceat(np.where(busy, speeds, 0.0), begin)
            mean_rate[some] = total / np.add.reduceat(busy.astype(np.float64), begin)
    sound = np.isfinite(sums) & (least >= 0)
    torn[some] = ~(sound[::2] & sound[1::2])
    imbalance[counts < 2] = np.nan
    return _Instances(imbalance, mean_rate, torn)


def _joined(columns: list[array[float]]) -> Floats:
    """One after the other."""
    parts: Any = columns
    return np.frombuffer(b"".join(parts), dtype=np.float64)
