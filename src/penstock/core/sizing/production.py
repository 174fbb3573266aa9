"""How fast records are appended to a topic, from its successive end offsets.

Rules: a rate is a slope over all samples of the last seconds, so that a producer's bursts average out; when the newer
half of them rises clearly above the older one, the newer half counts, so that a step up is met in one step; while the
halves differ the rate is `changing`, and nobody should scale in on it. An end that falls starts anew.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from penstock.model.ids import TopicPartition
from penstock.model.observations import PartitionSample

RISING_SHARE = 0.25
"""The newer half is this much above the older one: the rate has stepped up."""
CHANGING_SHARE = 0.10
SIGNIFICANT_DEVIATIONS = 3.0
"""Halves differ only when they do by this many standard deviations of counts that come at random."""
LEAST_HALF = 3
SAMPLES_KEPT = 240


@dataclass(frozen=True, slots=True)
class Production:
    """Per topic, the newest (instant, sum of end offsets), oldest first."""

    keep_seconds: float
    ends: Mapping[str, tuple[tuple[float, float], ...]] = field(
        default_factory=dict[str, tuple[tuple[float, float], ...]]
    )
    partitions: Mapping[str, int] = field(default_factory=dict[str, int])


@dataclass(frozen=True, slots=True)
class TopicRate:
    """Records per second appended (NaN when not known yet), and whether that is changing right now."""

    per_second: float
    changing: bool


def observe_ends(production: Production, samples: Iterable[PartitionSample]) -> Production:
    """Take in one collection; jobs that read the same topic see the same ends."""
    newest: dict[TopicPartition, PartitionSample] = {}
    for sample in samples:
        if sample.place not in newest or sample.end > newest[sample.place].end:
            newest[sample.place] = sample
    totals: dict[str, list[PartitionSample]] = {}
    for sample in newest.values():
        totals.setdefault(sample.place.topic, []).append(sample)
    ends, partitions = dict(production.ends), dict(production.partitions)
    for topic, rows in totals.items():
        at, total = max(row.at for row in rows), float(sum(row.end for row in rows))
        before = ends.get(topic, ())
        if before and at <= before[-1][0]:
            continue
        if partitions.get(topic) != len(rows) or (before and total < before[-1][1]):
            before = ()
        kept = tuple(row for row in before if row[0] >= at - production.keep_seconds)
        ends[topic], partitions[topic] = (*kept, (at, total))[-SAMPLES_KEPT:], len(rows)
    return Production(production.keep_seconds, ends, partitions)


def rate_of(production: Production, topic: str) -> TopicRate:
    """The topic's rate over the seconds that are kept."""
    rows = production.ends.get(topic, ())
    whole = _slope(rows)
    if len(rows) < 2 * LEAST_HALF:
        return TopicRate(whole, False)
    middle = (rows[0][0] + rows[-1][0]) / 2
    older = tuple(row for row in rows if row[0] <= middle)
    newer = tuple(row for row in rows if row[0] >= middle)
    if min(len(older), len(newer)) < LEAST_HALF:
        return TopicRate(whole, False)
    before, after = _slope(older), _slope(newer)
    counted = rows[-1][1] - rows[0][1]
    apart = abs(after - before) * (rows[-1][0] - rows[0][0]) / 2
    if apart <= SIGNIFICANT_DEVIATIONS * math.sqrt(max(0.0, counted)):
        return TopicRate(whole, False)
    changing = abs(after - before) > CHANGING_SHARE * max(after, before)
    risen = after > (1 + RISING_SHARE) * before
    return TopicRate(max(whole, after) if risen else whole, changing)


def _slope(rows: tuple[tuple[float, float], ...]) -> float:
    """Least-squares slope, not below zero; NaN for fewer than two instants."""
    if len(rows) < 2:
        return math.nan
    mean_at = math.fsum(at for at, _ in rows) / len(rows)
    mean_end = math.fsum(end for _, end in rows) / len(rows)
    spread = math.fsum((at - mean_at) ** 2 for at, _ in rows)
    if spread <= 0:
        return math.nan
    return max(0.0, math.fsum((at - mean_at) * (end - mean_end) for at, end in rows) / spread)
