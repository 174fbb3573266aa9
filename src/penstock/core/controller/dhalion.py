"""Dhalion's scaling as DS2's paper describes it (2, 5.2): driven by backpressure, one operator at a time.

Rules: the first job in the order of the graph that can't take in what it is offered is the bottleneck; its threads grow
in proportion to the share of time under backpressure, so they double at most; then it waits for things to settle. One
that has all the threads it may have is passed over. A
queue that is still full counts as a little backpressure, which is why it ends above what is needed. A job whose change
brought nothing is blacklisted. No backpressure, no signal: it never scales in.
On Spark a topic takes the place of blocked senders, so backpressure is the share of the offered rate that stays behind.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.core.controller.rules import Ask, JobFacts, Ruling, conclude, read_facts, seen_after
from penstock.core.sizing.layout import Layout, lay_out
from penstock.model.decisions import Decision, ScaleThreads
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import Observation

LEAST_SHARE = 0.05
"""Backpressure below this share of the rate is jitter."""
FULL_QUEUE_SHARE = 0.1
GAIN = 0.05


@dataclass(frozen=True, slots=True)
class Trial:
    """The last change, until it is judged."""

    job: str
    rate_before: float
    windows_left: int


@dataclass(frozen=True, slots=True, eq=False)
class DhalionState:
    layout: Layout
    seen: Mapping[str, float] = field(default_factory=dict[str, float])
    trial: Trial | None = None
    blacklist: Mapping[str, float] = field(default_factory=dict[str, float])
    """Jobs whose change brought nothing, each with the rate that was offered then."""
    round: int = 0


class Dhalion:
    """One bottleneck at a time."""

    @property
    def name(self) -> str:
        return "dhalion"

    def start(self, pipeline: PipelineSpec) -> DhalionState:
        """State before the first round."""
        return DhalionState(lay_out(pipeline))

    def decide(
        self, state: DhalionState, observation: Observation, now: float
    ) -> tuple[DhalionState, Decision]:
        """One round: judge the last change, else find the bottleneck and scale it up."""
        facts = read_facts(state.layout, observation, state.seen, now)
        trial, blacklist = _judge(state, facts)
        asks: dict[str, Ask] = {}
        if trial is None:
            asks = _find_bottleneck(state.layout, [f for f in facts if not _listed(blacklist, f)])
        ruling = Ruling(self.name, state.round + 1, now, "No backpressure that it may act on")
        decision = conclude(ruling, state.layout, observation, facts, asks)
        for action in decision.actions:
            if isinstance(action, ScaleThreads):
                job = next(f for f in facts if f.spec.name == action.job)
                warm_up = job.spec.options.scaling.warm_up_windows
                trial = Trial(action.job, job.rate_in, warm_up + 1)
        following = DhalionState(
            state.layout, seen_after(observation, state.seen, now), trial, blacklist, state.round + 1
        )
        return following, decision


def _share(facts: JobFacts) -> float:
    """Share of time under backpressure."""
    if not facts.fresh:
        return 0.0
    unserved = facts.unserved_share
    if unserved >= LEAST_SHARE and facts.backlog > 0:
        return unserved
    return FULL_QUEUE_SHARE if facts.queue_full else 0.0


def _find_bottleneck(layout: Layout, facts: Sequence[JobFacts]) -> dict[str, Ask]:
    """What it asks for the first job under backpressure that may have more, and for those before it that may not."""
    asks: dict[str, Ask] = {}
    for job in facts:
        if job.aside or not _share(job) > 0:
            continue
        name = job.spec.name
        may_grow = job.threads < int(layout.most[layout.index[name]])
        asks[name] = _ask(job, may_grow=may_grow)
        if may_grow:
            break
    return asks


def _ask(facts: JobFacts, *, may_grow: bool) -> Ask:
    share = _share(facts)
    threads = max(facts.threads + 1, math.ceil(facts.threads * (1 + share) - 1e-9))
    found = f"under backpressure, {share:.0%} of the time"
    return Ask(
        threads,
        f"It is the first job {found}: {facts.threads} -> {threads}."
        if may_grow
        else f"It is {found}, and has the most threads it may have, so the next one is looked for.",
        f"threads = ceil({facts.threads} x (1 + {share:.6g})) = {threads}; backpressure = 1 - {facts.rate_in:.6g}/s"
        f" taken in / {facts.rate_offered:.6g}/s offered, at least {FULL_QUEUE_SHARE} while its queue is full",
    )


def _listed(blacklist: Mapping[str, float], facts: JobFacts) -> bool:
    """Blacklisted, and offered no more than it was then."""
    offered = blacklist.get(facts.spec.name)
    return offered is not None and not facts.rate_offered > (1 + GAIN) * offered


def _judge(state: DhalionState, facts: list[JobFacts]) -> tuple[Trial | None, Mapping[str, float]]:
    trial = state.trial
    if trial is None:
        return None, state.blacklist
    job = next(f for f in facts if f.spec.name == trial.job)
    left = trial.windows_left - (1 if job.fresh else 0)
    if left > 0:
        return Trial(trial.job, trial.rate_before, left), state.blacklist
    if _share(job) > 0 and job.rate_in < (1 + GAIN) * trial.rate_before:
        return None, {**state.blacklist, trial.job: job.rate_offered}
    return None, {name: rate for name, rate in state.blacklist.items() if name != trial.job}
