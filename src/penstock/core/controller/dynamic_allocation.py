"""Spark's own dynamic allocation, told of threads: more while work waits, fewer when nothing ran for a while.

Rules, as in Spark: while work is pending it asks for 1, 2, 4, 8 … more, round by round, and begins at 1 again once
nothing waits (a round without news of a job is not that); what was idle for a minute is let go. A micro-batch spreads
over all threads it has, so none of them is idle while batches run: under a steady load it never scales in. It looks at
every job by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.core.controller.rules import Ask, JobFacts, Ruling, conclude, read_facts, seen_after
from penstock.core.sizing.batch_time import objective_seconds
from penstock.core.sizing.layout import Layout, lay_out
from penstock.model.decisions import Decision
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import Observation

IDLE_SECONDS = 60.0
"""spark.dynamicAllocation.executorIdleTimeout."""


@dataclass(frozen=True, slots=True, eq=False)
class AllocationState:
    layout: Layout
    seen: Mapping[str, float] = field(default_factory=dict[str, float])
    steps: Mapping[str, int] = field(default_factory=dict[str, int])
    """Threads to add next, for jobs with work pending."""
    busy_at: Mapping[str, float] = field(default_factory=dict[str, float])
    """When each job was last seen to work."""
    round: int = 0


class DynamicAllocation:
    """Doubling on pending work, removal when idle."""

    @property
    def name(self) -> str:
        return "spark_dynamic_allocation"

    def start(self, pipeline: PipelineSpec) -> AllocationState:
        """State before the first round."""
        return AllocationState(lay_out(pipeline))

    def decide(
        self, state: AllocationState, observation: Observation, now: float
    ) -> tuple[AllocationState, Decision]:
        """One round, each job by itself."""
        facts = read_facts(state.layout, observation, state.seen, now)
        asks: dict[str, Ask] = {}
        steps: dict[str, int] = {}
        busy_at = dict(state.busy_at)
        for job in facts:
            name = job.spec.name
            if job.fresh or name not in busy_at:
                busy_at[name] = now
            if job.aside:
                continue
            if not job.fresh and name in state.steps:
                steps[name] = state.steps[name]
            if _pending(job):
                step = state.steps.get(name, 1)
                steps[name] = 2 * step
                asks[name] = Ask(
                    job.threads + step,
                    f"Work is pending, so it asks for {step} more: {job.threads} -> {job.threads + step}.",
                    f"threads = {job.threads} + {step}; {job.backlog:.6g} records wait; the next step is {2 * step}",
                )
            elif now - busy_at[name] >= IDLE_SECONDS and not job.backlog > 0:
                least = int(state.layout.least[state.layout.index[name]])
                asks[name] = Ask(
                    least,
                    f"Nothing ran for {now - busy_at[name]:.0f} s: {job.threads} -> {least}.",
                    f"threads = least = {least}, since {now - busy_at[name]:.6g} s without a batch >= {IDLE_SECONDS:.6g} s",
                )
        ruling = Ruling(self.name, state.round + 1, now, "Nothing is pending and nothing idle")
        decision = conclude(ruling, state.layout, observation, facts, asks)
        following = AllocationState(
            state.layout, seen_after(observation, state.seen, now), steps, busy_at, state.round + 1
        )
        return following, decision


def _pending(facts: JobFacts) -> bool:
    """More waits than arrives in an interval and a batch."""
    options = facts.spec.options
    usual = options.interval_seconds + max(
        0.0, objective_seconds(options.interval_seconds, options.slo_lag_seconds)
    )
    return facts.fresh and math.isfinite(facts.backlog) and facts.backlog > usual * facts.rate_offered
