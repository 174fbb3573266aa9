"""The loop of one pipeline: observe, decide, record, act.

A round is held when every job has closed a window since the last one, or else a policy interval after it: jobs that are
sized together are then decided on the same stretch of time, and an idle one keeps nobody waiting. Where a source has just
stepped up, the round waits until it is known how far, which is a part of an interval at most. What changes or alerts is
kept whole; of a quiet round over many jobs the proposals of some, in turns, so that each job's newest one is never far.
A loop owns no thread, never sleeps and holds no arithmetic: what a number means is the core's, what a change does is the
container's.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.core.controller.strategy import Strategy
from penstock.core.sizing.production import SETTLED_SHARE, Production, TopicRate, observe_ends, rate_of
from penstock.core.sizing.windows import Windows, observe_samples, start_windows
from penstock.model.decisions import Decision, ScaleExecutors, ScaleThreads
from penstock.model.errors import PenstockError
from penstock.model.graph import source_topics
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import ContainerSample, JobWindow, Observation
from penstock.model.status import RunEvent
from penstock.ports.container import Container
from penstock.ports.journal import Journal
from penstock.ports.measurements import Measured

LOOK_SECONDS = 0.5
"""How often measurements are fetched: a decision is at most so much later than the window that led to it."""
QUIET_JOBS = 50
"""Jobs whose proposals are kept of a round that changes nothing: words for a thousand cost more than deciding them."""


@dataclass(frozen=True, slots=True)
class Room:
    """Executors that a container may have; none where their number is fixed."""

    slots_per_executor: int = 0
    executors_min: int = 1
    executors_max: int = 0


@dataclass(frozen=True, slots=True)
class Seen:
    """What the loop knows now; replaced whole, so that others may read it at any time."""

    windows: Mapping[str, JobWindow] = field(default_factory=dict[str, JobWindow])
    """The newest of each job."""
    backlog: Mapping[str, float] = field(default_factory=dict[str, float])
    container: ContainerSample | None = None
    decision: Decision | None = None
    changed: Decision | None = None
    """The newest decision that changed something, or alerts."""


class Autoscaler:
    """Keeps one pipeline's jobs at their size; `step` it."""

    def __init__(
        self,
        pipeline: PipelineSpec,
        strategy: Strategy,
        container: Container,
        journal: Journal,
        room: Room | None = None,
    ) -> None:
        self._pipeline, self._strategy = pipeline, strategy
        self._container, self._journal, self._room = container, journal, room or Room()
        self._state: Any = strategy.start(pipeline)
        self._interval_seconds = min(job.options.scaling.policy_interval_seconds for job in pipeline.jobs)
        self._windows: Windows = start_windows(pipeline)
        self._production = Production(self._interval_seconds)
        self._pending: dict[str, JobWindow] = {}
        self._round_at = math.nan
        self._due_at = math.inf
        """Since when a round is due that has not been held."""
        self._turn = 0
        """The first job whose proposal is kept of the next quiet round."""
        self.only_observes = False
        """Set when the run is ending: what is measured is still taken in, nothing is decided any more."""
        self.seen = Seen()

    def step(self, now: float) -> float:
        """Take in what was measured, hold a round when one is due; when to wake next."""
        measured = self._container.collect(now)
        self._observe(measured, now)
        if self.only_observes:
            return now + LOOK_SECONDS
        if math.isnan(self._round_at):
            self._round_at = now
        if len(self._pending) == len(self._pipeline.jobs) or now >= self._round_at + self._interval_seconds:
            self._due_at = min(self._due_at, now)
            rates = {topic: rate_of(self._production, topic) for topic in source_topics(self._pipeline)}
            late = now >= self._due_at + SETTLED_SHARE * self._interval_seconds
            if late or not any(rate.rising for rate in rates.values()):
                self._round_at, self._due_at = now, math.inf
                self._decide(rates, now)
        return now + LOOK_SECONDS

    def _observe(self, measured: Measured, now: float) -> None:
        self._windows, closed = observe_samples(self._windows, measured.batches, measured.partitions, now=now)
        self._production = observe_ends(self._production, measured.partitions)
        self._pending.update({window.job: window for window in closed})
        backlog: dict[str, float] = {}
        for sample in measured.partitions:
            backlog[sample.job] = backlog.get(sample.job, 0.0) + sample.backlog
        before = self.seen
        self.seen = Seen(
            windows={**before.windows, **self._pending},
            backlog={**before.backlog, **backlog},
            container=measured.container or before.container,
            decision=before.decision,
            changed=before.changed,
        )
        for batch in measured.batches:
            self._journal.write(batch)

    def _decide(self, rates: Mapping[str, TopicRate], now: float) -> None:
        self._state, decision = self._strategy.decide(self._state, self._observation(rates, now), now)
        self._pending = {}
        tells = bool(decision.actions) or decision.verdict in ("alert", "roll_back")
        self._journal.write(decision if tells else self._shorten(decision))
        if self.seen.container is not None:
            self._journal.write(self.seen.container)
        before = self.seen
        self.seen = Seen(
            before.windows, before.backlog, before.container, decision, decision if tells else before.changed
        )
        for action in decision.actions:
            self._act(action, now)

    def _shorten(self, decision: Decision) -> Decision:
        """The same with as many proposals as are kept of a quiet round; others have their turn in the next ones."""
        jobs = len(decision.proposals)
        if jobs <= QUIET_JOBS:
            return decision
        kept = decision.proposals[self._turn : self._turn + QUIET_JOBS]
        self._turn = self._turn + QUIET_JOBS if self._turn + QUIET_JOBS < jobs else 0
        text = f"{jobs - len(kept)} other jobs: nothing changes, and their proposals are kept in turns"
        return replace(decision, proposals=kept, skipped=(*decision.skipped, text))

    def _observation(self, rates: Mapping[str, TopicRate], now: float) -> Observation:
        return Observation(
            at=now,
            windows=dict(self._pending),
            threads=self._container.threads(),
            source_rates={topic: rate.per_second for topic, rate in rates.items()},
            slots=self._container.slots(),
            executors=self._container.executors(),
            backlog=self.seen.backlog,
            changing=frozenset(topic for topic, rate in rates.items() if rate.changing),
            slots_per_executor=self._room.slots_per_executor,
            executors_min=self._room.executors_min,
            executors_max=self._room.executors_max,
        )

    def _act(self, action: ScaleThreads | ScaleExecutors, now: float) -> None:
        job = action.job if isinstance(action, ScaleThreads) else ""
        try:
            if isinstance(action, ScaleThreads):
                self._container.set_threads(action.job, action.threads)
                count = f"{action.threads} {'thread' if action.threads == 1 else 'threads'}"
                text = f"{action.job} has {count} from its next batch on."
            else:
                self._container.set_executors(action.executors)
                text = f"{action.executors} {'executor is' if action.executors == 1 else 'executors are'} asked for."
        except Exception as error:  # noqa: BLE001 - one change that fails must not take the others with it
            text = str(error) if isinstance(error, PenstockError) else f"{type(error).__name__}: {error}"
            self._journal.write(RunEvent(now, "refused", text, job, action.cause))
            return
        self._journal.write(RunEvent(now, "changed", text, job, action.cause))
