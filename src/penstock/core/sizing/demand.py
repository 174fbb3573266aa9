"""What every job must take in: production rates of the sources, carried through the graph by selectivities (Eq. 7-8).

Rules: one traversal in the order of the graph; a job hands on what it takes in, at most what its most threads carry, and
what is not known is not made up on the way; what is far upstream of its capacity shows only what its upstream emitted,
so observed rates count only where a rate can't be derived. The backlog's share B/t rides along by itself, so that it
can be shown and taken back.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from penstock.core.sizing.layout import Bools, Floats, Layout
from penstock.model.observations import Observation


@dataclass(frozen=True, slots=True, eq=False)
class Demand:
    """Records per second, by job. NaN where nothing is known."""

    target: Floats
    """Without the backlog's share."""
    full: Floats
    """With it: of the job's own backlog, and of what its upstream will hand on of theirs."""
    excess: Floats
    """Records of backlog beyond what is always under way."""
    backlog_rate: Floats
    """B / t of the job's own."""
    guessed: Bools
    """Where an observed rate stands for one that could not be derived."""


def known_source_rates(
    layout: Layout, observation: Observation, before: Mapping[str, float]
) -> dict[str, float]:
    """Each source topic's rate now; the last known where a number is missing or impossible."""
    rates: dict[str, float] = {}
    for _, topic in layout.sources:
        rate = observation.source_rates.get(topic, math.nan)
        rates[topic] = rate if math.isfinite(rate) and rate >= 0 else before.get(topic, math.nan)
    return rates


def carry_demand(
    layout: Layout,
    observation: Observation,
    sources: Mapping[str, float],
    selectivity: Floats,
    carried: Floats,
    backlog: Floats | None,
) -> Demand:
    """Targets of all jobs; `carried` is what each can hand on at most; no backlog leaves its share out."""
    first = [0.0] * len(layout.topics)
    for number, topic in layout.sources:
        first[number] = sources[topic]
    guesses = (
        [_observed(layout, observation, i) for i in range(len(layout))]
        if _lacking(layout, first, selectivity)
        else []
    )
    walk = _Walk(layout, first, selectivity.tolist(), carried.tolist(), guesses)
    targets, guessed = walk.run([0.0] * len(layout))
    target = np.array(targets)
    marks = np.zeros(len(layout), dtype=np.bool_)
    marks[guessed] = True
    if backlog is None:
        nothing = np.zeros(len(layout))
        return Demand(target, target, nothing, nothing, marks)
    excess = excess_backlog(layout, backlog, target)
    share = excess / layout.slo_lag
    full = np.array(walk.run(share.tolist())[0]) if excess.any() else target
    return Demand(target, full, excess, share, marks)


def _lacking(layout: Layout, rates: list[float], selectivity: Floats) -> bool:
    """Whether the walk will meet a rate that it can't derive."""
    return bool(np.isnan(rates).any() or np.isnan(selectivity).any() or not all(layout.reads))


@dataclass(frozen=True, slots=True)
class _Walk:
    """What every walk over the graph needs."""

    layout: Layout
    first: list[float]
    selectivity: list[float]
    carried: list[float]
    guesses: list[float]

    def run(self, share: list[float]) -> tuple[list[float], list[int]]:
        """(records per second that each job must take in, with its share; jobs whose input had to be guessed)."""
        reads, writes, ratios, most = self.layout.reads, self.layout.writes, self.selectivity, self.carried
        rates, targets, guessed = list(self.first), list(share), list[int]()
        for i in range(len(targets)):
            total = 0.0 if reads[i] else math.nan
            for topic in reads[i]:
                total += rates[topic]
            if total != total:
                total = self.guesses[i] if self.guesses else math.nan
                guessed.append(i)
            total += share[i]
            targets[i] = total
            out = most[i] if total > most[i] else total  # what is not known stays unknown
            for topic, edge in writes[i]:
                rates[topic] += out * ratios[edge]
        return targets, guessed


def _observed(layout: Layout, observation: Observation, row: int) -> float:
    """What was appended to a job's inputs during its newest window; NaN when that is not known either."""
    window = observation.windows.get(layout.names[row])
    rates = (
        []
        if window is None
        else [window.production_rates.get(layout.topics[t], math.nan) for t in layout.reads[row]]
    )
    total = sum(rates) if rates else math.nan
    return total if math.isfinite(total) and total >= 0 else math.nan


def excess_backlog(layout: Layout, backlog: Floats, target: Floats) -> Floats:
    """Backlog beyond what is always under way: records wait up to one interval, then for one batch of L seconds."""
    usual = np.nan_to_num(target) * (layout.interval + layout.objective)
    return np.maximum(0.0, np.nan_to_num(backlog) - usual)
