"""What a run's journal says of how it was sized: decisions, time to settle, sizes, lag, what it used. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from penstock.model.decisions import Decision, ScaleThreads
from penstock.model.status import RunStatus


@dataclass(frozen=True, slots=True)
class Sizing:
    """One stretch of a run."""

    decisions: int
    """That changed the size of a job."""
    settled_seconds: float
    """From the stretch's start to its last change; 0 when there was none."""
    sizes: Mapping[str, int]
    """Threads of each job at the end."""
    lag_seconds: float
    """time_lagged at the end, of the job that is furthest behind."""
    instance_minutes: float


def read_sizing(
    statuses: Sequence[RunStatus], decisions: Sequence[Decision], start: float, end: float
) -> Sizing:
    """How a run was sized between two moments."""
    within = [s for s in statuses if start <= s.at <= end]
    changed = [d for d in decisions if start <= d.at <= end and _changes(d)]
    last = within[-1] if within else None
    return Sizing(
        decisions=len(changed),
        settled_seconds=changed[-1].at - start if changed else 0.0,
        sizes={} if last is None else {job.job: job.threads for job in last.jobs},
        lag_seconds=math.nan if last is None else max(job.lag_seconds for job in last.jobs),
        instance_minutes=sum(
            (following.at - status.at) * sum(job.threads for job in status.jobs) / 60
            for status, following in pairwise(within)
        ),
    )


def _changes(decision: Decision) -> bool:
    return any(isinstance(action, ScaleThreads) for action in decision.actions)
