"""A small world for tests without Spark: jobs whose batches cost what a `JobCost` says, joined by topics, in steps.

`window`, `make_job` and `make_pipeline` build the values that decisions read; `Fleet` lets a strategy act on them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.core.controller.strategy import Strategy
from penstock.core.sizing.batch_time import JobCost, StageCost, batch_seconds, carried_rate
from penstock.model.decisions import Decision, JobProposal, ScaleThreads
from penstock.model.graph import order_jobs
from penstock.model.jobs import Input, JobOptions, JobSpec, Output, PipelineSpec, ScalingKnobs
from penstock.model.observations import InstanceColumns, InstanceSample, JobWindow, Observation, StageSample
from penstock.model.topics import TopicSpec

START = 1_000.0
WINDOW_SECONDS = 10.0
QUICK = ScalingKnobs(warm_up_windows=0, min_change=0)
"""Acts on the first window, on any difference."""
OBJECTIVE_SECONDS = 2.0
"""L of the default options: interval 2 s, slo_lag 30 s."""


def make_job(
    name: str, reads: Sequence[str], writes: Sequence[str] = (), scaling: ScalingKnobs = QUICK, **options: Any
) -> JobSpec:
    return JobSpec(
        name=name,
        inputs=tuple(Input(topic=topic) for topic in reads),
        outputs=tuple(Output(topic=topic) for topic in writes),
        options=JobOptions(scaling=scaling, **options),
    )


def make_pipeline(*jobs: JobSpec, partitions: int = 8) -> PipelineSpec:
    names = dict.fromkeys(topic for job in jobs for topic in (*job.input_topics, *job.output_topics))
    topics = tuple(TopicSpec(name=name, columns="n long", partitions=partitions) for name in names)
    return PipelineSpec(name="p", topics=topics, jobs=jobs)


def stage_of(
    cost: StageCost, ordinal: int, records: float, threads: int, batches: int, split: Sequence[float] = ()
) -> StageSample:
    """One stage over a window; `split` gives each instance's share of the records, even when left out."""
    tasks = threads if cost.ceiling is None else cost.ceiling
    useful = batches * cost.useful_seconds(records / batches, threads)
    shares = split if len(split) == tasks else [1 / tasks] * tasks
    instances = [InstanceSample(records * s, 0.0, useful * s) for s in shares]
    longest = max(cost.unit_share, *shares) * useful / batches
    return StageSample(
        ordinal, tasks * batches, cost.ceiling, useful, records, records,
        longest_seconds=longest, instances=InstanceColumns.of(instances),
    )  # fmt: skip


def window(
    job: str,
    cost: JobCost,
    records: float,
    threads: int = 1,
    *,
    ended_at: float = START + WINDOW_SECONDS,
    seconds: float = WINDOW_SECONDS,
    batches: int = 5,
    out: Mapping[str, float] | None = None,
    topic: str = "in",
    **more: Any,
) -> JobWindow:
    """A window in which a job took in so many records at its true cost."""
    stages = tuple(stage_of(s, i, records, threads, batches) for i, s in enumerate(cost.stages))
    fields: dict[str, Any] = {
        "production_rates": {topic: records / seconds},
        "backlog": {topic: 0.0},
        "backlog_before": {topic: 0.0},
        "stages": stages,
        **more,
    }
    return JobWindow(
        job=job,
        generation=0,
        threads=threads,
        started_at=ended_at - seconds,
        ended_at=ended_at,
        batches=batches,
        records_in={topic: records},
        records_out=dict(out or {}),
        overhead_seconds=cost.overhead_seconds,
        batch_seconds=batch_seconds(cost, records / batches, threads),
        **fields,
    )


def one_stage(record_seconds: float, overhead: float = 0.0, **more: Any) -> JobCost:
    return JobCost(overhead, (StageCost(record_seconds, **more),))


@dataclass
class Fleet:
    """Jobs, what they truly cost, and what is offered; each `look` lets one window pass."""

    pipeline: PipelineSpec
    costs: dict[str, JobCost]
    ratios: Mapping[tuple[str, str], float]
    """Per (job, topic): records out per record in."""
    rates: dict[str, float]
    """Per source topic: records per second."""
    threads: dict[str, int]
    now: float = START
    backlog: dict[str, float] = field(default_factory=dict[str, float])
    slots: int = 0
    change_window: Callable[[JobWindow], JobWindow | None] = lambda window: window
    """What a test does to each window before it is seen; None hides it."""
    obeys: bool = True

    def look(self) -> Observation:
        """Let a window pass and tell of it."""
        self.now += WINDOW_SECONDS
        flow = dict(self.rates)
        windows: dict[str, JobWindow] = {}
        for name in order_jobs(self.pipeline):
            job = self.pipeline.job(name)
            offered = sum(flow.get(topic, 0.0) for topic in job.input_topics)
            taken = self._take_in(job, offered)
            outs = {t: taken * self.ratios.get((name, t), 0.0) for t in job.output_topics}
            for topic, rate in outs.items():
                flow[topic] = flow.get(topic, 0.0) + rate
            seen = self.change_window(self._window(job, offered, taken, outs))
            if seen is not None:
                windows[name] = seen
        return Observation(
            self.now, windows, dict(self.threads), dict(self.rates), self.slots, backlog=dict(self.backlog)
        )

    def _take_in(self, job: JobSpec, offered: float) -> float:
        seconds = min(
            job.options.interval_seconds, job.options.slo_lag_seconds - job.options.interval_seconds
        )
        most = carried_rate(self.costs[job.name], seconds, self.threads[job.name])
        waiting = self.backlog.get(job.name, 0.0)
        taken = min(offered + waiting / WINDOW_SECONDS, most)
        self.backlog[job.name] = max(0.0, waiting + (offered - taken) * WINDOW_SECONDS)
        return taken

    def _window(self, job: JobSpec, offered: float, taken: float, outs: Mapping[str, float]) -> JobWindow:
        topic = job.input_topics[0]
        return window(
            job.name,
            self.costs[job.name],
            taken * WINDOW_SECONDS,
            self.threads[job.name],
            ended_at=self.now,
            out={t: rate * WINDOW_SECONDS for t, rate in outs.items()},
            topic=topic,
            production_rates={topic: offered},
            backlog={topic: self.backlog[job.name]},
        )

    def carry_out(self, decision: Decision) -> None:
        for action in decision.actions:
            if isinstance(action, ScaleThreads) and self.obeys:
                self.threads[action.job] = action.threads


@dataclass
class Pilot:
    """A strategy at the fleet's wheel; keeps what it decided."""

    strategy: Strategy
    fleet: Fleet
    decisions: list[Decision] = field(default_factory=list[Decision])

    def __post_init__(self) -> None:
        self._state: Any = self.strategy.start(self.fleet.pipeline)

    def step(self, change: Callable[[Observation], Observation] = lambda seen: seen) -> Decision:
        observation = change(self.fleet.look())
        self._state, decision = self.strategy.decide(self._state, observation, self.fleet.now)
        self.fleet.carry_out(decision)
        self.decisions.append(decision)
        return decision

    def steps(self, count: int) -> Decision:
        for _ in range(count):
            self.step()
        return self.decisions[-1]


def proposal_of(decision: Decision, job: str) -> JobProposal:
    return next(p for p in decision.proposals if p.job == job)


def sizes(decision: Decision) -> dict[str, int]:
    return {p.job: p.proposed for p in decision.proposals}


def suffices(cost: JobCost, rate: float, threads: int, seconds: float = OBJECTIVE_SECONDS) -> bool:
    """D(p) <= L, give or take what sums in another order differ by."""
    return batch_seconds(cost, rate * seconds, threads) <= seconds * (1 + 1e-6)


def is_least(cost: JobCost, rate: float, threads: int, seconds: float = OBJECTIVE_SECONDS) -> bool:
    """Whether these threads suffice and one less would not."""
    fewer = batch_seconds(cost, rate * seconds, max(1, threads - 1)) > seconds * (1 - 1e-6)
    return suffices(cost, rate, threads, seconds) and (threads == 1 or fewer)


def paper_need(cost: JobCost, rate: float) -> int:
    """Eq. 7 over the sum of its stages' costs."""
    return max(1, math.ceil(rate * math.fsum(s.record_seconds for s in cost.stages) * (1 - 1e-9)))
