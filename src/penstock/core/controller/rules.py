"""What the rule-based strategies share: plain facts about each job, and a decision from what they ask for.

They know backlogs and observed rates, not true ones: that is the point of comparing with them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.core.sizing.layout import Layout
from penstock.core.sizing.slots import executors_for, grant_threads, slots_at_most
from penstock.core.sizing.standing import offered_rate
from penstock.core.sizing.windows import AHEAD_SECONDS
from penstock.model.decisions import (
    Action,
    Decision,
    Evidence,
    JobProposal,
    Limit,
    ScaleExecutors,
    ScaleThreads,
    Verdict,
)
from penstock.model.jobs import JobSpec
from penstock.model.observations import Observation


@dataclass(frozen=True, slots=True)
class JobFacts:
    """One job as a rule sees it. `aside` says why no rule may touch it."""

    spec: JobSpec
    threads: int
    fresh: bool
    rate_in: float
    """Records per second taken in over its newest window; NaN when not known."""
    rate_offered: float
    backlog: float
    aside: str = ""

    @property
    def unserved_share(self) -> float:
        """Share of what is offered that is not taken in; 0 when not known."""
        if not (self.rate_offered > 0 and self.rate_in >= 0):
            return 0.0
        return min(1.0, max(0.0, 1.0 - self.rate_in / self.rate_offered))

    @property
    def queue_full(self) -> bool:
        """Whether more waits than the lag objective allows."""
        return self.backlog > self.spec.options.slo_lag_seconds * max(self.rate_in, 0.0) > 0


@dataclass(frozen=True, slots=True)
class Ask:
    """What a rule asks for one job, why, and the arithmetic behind it."""

    threads: int
    reason: str
    formula: str


def read_facts(
    layout: Layout, observation: Observation, seen: Mapping[str, float], now: float
) -> list[JobFacts]:
    """Facts of all jobs, in the order of the graph; `seen` has the end of each job's newest known window."""
    return [_facts(job, observation, seen, now) for job in layout.jobs]


def _facts(job: JobSpec, observation: Observation, seen: Mapping[str, float], now: float) -> JobFacts:
    threads = observation.threads.get(job.name, 0)
    window = observation.windows.get(job.name)
    aside = "its threads are not known" if threads < 1 else ""
    if not job.options.scalable:
        aside = "it is declared scalable = false"
    backlog = observation.backlog.get(job.name, math.nan)
    if window is not None and window.ended_at > now + AHEAD_SECONDS:
        aside = aside or f"its window ends {window.ended_at - now:.6g} s from now"
        window = None
    if window is None or not window.ended_at > seen.get(job.name, -math.inf):
        return JobFacts(job, max(1, threads), False, math.nan, math.nan, backlog, aside)
    rate_in = (
        sum(window.records_in.values()) / window.elapsed_seconds if window.elapsed_seconds > 0 else math.nan
    )
    offered = offered_rate(job, window)
    if not math.isfinite(backlog):
        backlog = sum(window.backlog.values())
    numbers = {"records in": rate_in, "production": offered, "backlog": backlog}
    wrong = [
        f"{name} = {value:g}" for name, value in numbers.items() if not (math.isfinite(value) and value >= 0)
    ]
    if wrong and not aside:
        aside = f"{wrong[0]} of its window"
    return JobFacts(job, max(1, threads), True, rate_in, offered, backlog, aside)


def seen_after(observation: Observation, seen: Mapping[str, float], now: float) -> dict[str, float]:
    """Ends of the newest windows, this round's included; one in the future is forgotten, else nothing would be news."""
    ends = {job: window.ended_at for job, window in observation.windows.items()}
    latest = now + AHEAD_SECONDS
    return {**seen, **{job: at for job, at in ends.items() if seen.get(job, -math.inf) < at <= latest}}


@dataclass(frozen=True, slots=True)
class Ruling:
    """Who decides, when, and as which round."""

    strategy: str
    number: int
    now: float
    rule: str
    """What it goes by, in words, for jobs that it asks nothing for."""


def conclude(
    ruling: Ruling,
    layout: Layout,
    observation: Observation,
    facts: Sequence[JobFacts],
    asks: Mapping[str, Ask],
) -> Decision:
    """A decision from what was asked, inside each job's limits and the slots."""
    cause = f"{ruling.strategy}-{ruling.number}"
    threads = np.array([f.threads for f in facts], dtype=np.int64)
    asked = np.array(
        [asks[f.spec.name].threads if f.spec.name in asks and not f.aside else f.threads for f in facts],
        dtype=np.int64,
    )
    touched = np.array([f.spec.name in asks and not f.aside for f in facts], dtype=np.bool_)
    clipped = np.where(touched, np.clip(asked, layout.least, layout.most), threads)
    granted = grant_threads(clipped, clipped, threads, layout.priority, slots_at_most(observation))
    actions: list[Action] = [
        ScaleThreads(f.spec.name, int(to), cause)
        for f, to in zip(facts, granted, strict=True)
        if int(to) != f.threads
    ]
    executors = executors_for(int(granted.sum()), observation)
    if executors is not None and (actions or executors > observation.executors):
        actions.append(ScaleExecutors(executors, cause))
    proposals = tuple(
        _proposal(
            f,
            asks.get(f.spec.name),
            int(clipped[i]),
            _limit(layout, i, (asked, clipped, granted)),
            ruling.rule,
        )
        for i, f in enumerate(facts)
    )
    changes = [
        f"{f.spec.name} {f.threads} -> {to}"
        for f, to in zip(facts, granted.tolist(), strict=True)
        if to != f.threads
    ]
    verdict: Verdict = "scale" if actions else "hold"
    reason = f"Threads: {', '.join(changes)}." if changes else "Nothing to change by its rule."
    aside = tuple(f"{f.spec.name}: {f.aside}" for f in facts if f.aside)
    return Decision(cause, ruling.now, ruling.strategy, verdict, reason, proposals, tuple(actions), aside)


def _limit(layout: Layout, row: int, stages: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Limit:
    asked, clipped, granted = (int(column[row]) for column in stages)
    if granted < clipped:
        return "slots"
    if clipped < asked:
        return "partitions" if bool(layout.most_by_partitions[row]) else "max_threads"
    return "min_threads" if clipped > asked else "none"


def _proposal(facts: JobFacts, ask: Ask | None, asked: int, limit: Limit, rule: str) -> JobProposal:
    if facts.aside:
        limit = "set aside" if facts.spec.options.scalable else "unscalable"
        ask = Ask(facts.threads, f"Set aside: {facts.aside}; it keeps its {facts.threads}.", "none")
    ask = ask or Ask(facts.threads, f"{rule}; it keeps its {facts.threads}.", "none")
    return JobProposal(
        job=facts.spec.name,
        threads=facts.threads,
        proposed=asked,
        steady=asked,
        limit=limit,
        reason=ask.reason,
        formula=ask.formula,
        evidence=Evidence(
            target_rate=facts.rate_offered,
            backlog_records=facts.backlog,
            backlog_rate=0.0,
            true_rate=math.nan,
            observed_rate=facts.rate_in,
            selectivity={},
            overhead_seconds=math.nan,
            objective_seconds=math.nan,
            predicted_batch_seconds=math.nan,
        ),
    )
