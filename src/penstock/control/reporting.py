"""Says how a run stands, once a second, in the journal and to whoever asks; and passes on what happens to its tasks.

It decides nothing and changes nothing but what `tick` heals. A lag is a backlog over what the job's present threads
can do, so that the small batches of a start do not look like minutes.
"""

from __future__ import annotations

import math
from dataclasses import replace

from penstock.control.autoscaler import Autoscaler, Seen
from penstock.core.sizing.batch_time import JobCost, StageCost, carried_rate
from penstock.core.sizing.standing import job_standing, time_lagged
from penstock.model.decisions import Evidence, JobProposal
from penstock.model.jobs import JobSpec, PipelineSpec
from penstock.model.observations import JobWindow
from penstock.model.status import JobStatus, Phase, RunEvent, RunStatus
from penstock.ports.container import Container
from penstock.ports.journal import Journal

STATUS_SECONDS = 1.0
QUIET_INTERVALS = 2.0
"""So many policy intervals after a job's newest window, with nothing waiting, its rates are zero: no batch, no window."""
TEND_SECONDS = 0.1
"""How soon an ended task is noticed, and one whose pause is over starts again."""


class Tender:
    """Keeps tasks running; remembers why each job last failed."""

    def __init__(self, container: Container, journal: Journal) -> None:
        self._container, self._journal = container, journal
        self.troubles: dict[str, str] = {}

    def step(self, now: float) -> float:
        """Heal what can be healed; when to wake next."""
        for event in self._container.tick(now):
            self._note(event)
        return now + TEND_SECONDS

    def _note(self, event: RunEvent) -> None:
        self._journal.write(event)
        if event.kind in ("failed", "fenced"):
            self.troubles[event.job] = event.text


class Reporter:
    """The run's status, made anew each second."""

    def __init__(
        self,
        pipeline: PipelineSpec,
        container: Container,
        autoscaler: Autoscaler,
        tender: Tender,
        journal: Journal,
    ) -> None:
        self._pipeline, self._container, self._journal = pipeline, container, journal
        self._autoscaler, self._tender = autoscaler, tender
        self._told: tuple[object, dict[str, JobProposal]] = (None, {})
        self.phase: Phase = "starting"
        self.message = ""

    def step(self, now: float) -> float:
        """Write one status; when to wake next."""
        self._journal.write(self.status(now))
        return now + STATUS_SECONDS

    def status(self, now: float) -> RunStatus:
        """How everything stands now."""
        seen, threads = self._autoscaler.seen, self._container.threads()
        held = seen.container
        proposals = self._proposals(seen)
        return RunStatus(
            at=now,
            phase=self.phase,
            jobs=tuple(
                self._job(job, threads.get(job.name, 0), seen, proposals, now) for job in self._pipeline.jobs
            ),
            slots=self._container.slots(),
            executors=self._container.executors(),
            rss_bytes=held.rss_bytes if held else 0,
            heap_used_bytes=held.heap_used_bytes if held else 0,
            heap_max_bytes=held.heap_max_bytes if held else 0,
            decision=seen.changed.reason if seen.changed else "",
            message=self.message,
        )

    def _job(
        self, job: JobSpec, threads: int, seen: Seen, proposals: dict[str, JobProposal], now: float
    ) -> JobStatus:
        name = job.name
        window, backlog = seen.windows.get(name), seen.backlog.get(name, 0.0)
        standing = job_standing(window, backlog, threads, job)
        if window is not None and backlog == 0 and now > window.ended_at + QUIET_INTERVALS * _interval(job):
            standing = replace(standing, rate_in=0.0, rate_out=0.0, rate_offered=0.0)
        batches, dead_letters, restarts = self._container.counts(name)
        state, known = self._container.state(name), proposals.get(name)
        settled = seen.decision is not None and seen.decision.verdict != "observe"
        proposal = (
            known if settled else None
        )  # while rates settle it advises nothing, but its costs are the best known
        trouble = self._tender.troubles.get(name, "") if state in ("failed", "fenced", "restarting") else ""
        return JobStatus(
            job=name,
            state=state,
            threads=threads,
            proposed=proposal.proposed if proposal else threads,
            rate_in=standing.rate_in,
            rate_out=standing.rate_out,
            rate_offered=standing.rate_offered,
            capacity=standing.capacity,
            backlog=backlog,
            lag_seconds=time_lagged(backlog, processing_rate(window, standing.rate_in, known, threads)),
            batch_seconds=standing.batch_seconds,
            batches=batches,
            dead_letters=dead_letters,
            restarts=restarts,
            note=trouble or (proposal.reason if proposal else ""),
            slo_lag_seconds=job.options.slo_lag_seconds,
        )

    def _proposals(self, seen: Seen) -> dict[str, JobProposal]:
        """What the newest decision says of each job, put into words once."""
        decision = seen.decision
        if self._told[0] is not decision:
            self._told = (decision, {p.job: p for p in decision.proposals} if decision else {})
        return self._told[1]


def _interval(job: JobSpec) -> float:
    return job.options.scaling.policy_interval_seconds


def processing_rate(
    window: JobWindow | None, rate_in: float, proposal: JobProposal | None, threads: int
) -> float:
    """Records per second: what was taken in, or what the present threads carry by the newest decision, the larger.

    NaN while neither is known: batches that are still growing show the start, not the job.
    """
    seen = math.nan if window is None or (window.growing and rate_in > 0) else rate_in
    carried = math.nan
    if proposal is not None and proposal.evidence.objective_seconds > 0:
        held = proposal.evidence
        carried = carried_rate(cost_in(held), held.objective_seconds, threads)
    return max((rate for rate in (seen, carried) if math.isfinite(rate) and rate > 0), default=math.nan)


def cost_in(evidence: Evidence) -> JobCost:
    """What a decision believed that batches cost."""
    return JobCost(
        evidence.overhead_seconds,
        tuple(StageCost(s.record_seconds, s.task_seconds, s.ceiling, s.unit_share) for s in evidence.stages),
    )
