"""How a run stands, as people see it: one line for each job, and what is kept of a run for later questions."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.model.decisions import Decision
from penstock.model.errors import SpecError

JobState = Literal["starting", "running", "restarting", "draining", "drained", "failed", "fenced", "stopped"]
Phase = Literal["starting", "running", "draining", "ended", "failed"]


@dataclass(frozen=True, slots=True)
class JobStatus:
    """One job now. A number that is not known yet is NaN."""

    job: str
    state: JobState
    threads: int
    proposed: int
    """Threads that the newest decision asked for."""
    rate_in: float
    """Records per second taken in, over the newest window."""
    rate_out: float
    rate_offered: float
    """Records per second appended to its inputs, over the newest window."""
    capacity: float
    """Records per second that its threads can take in, by the batch-time formula."""
    backlog: float
    """Records not yet committed."""
    lag_seconds: float
    """time_lagged: backlog / processing rate, the best that is known of its present threads."""
    batch_seconds: float
    batches: int
    dead_letters: int
    restarts: int
    note: str = ""
    """The newest decision about it, or why it does not run, in words."""
    slo_lag_seconds: float = math.nan
    """The largest lag that its owner accepts."""


@dataclass(frozen=True, slots=True)
class RunStatus:
    """A whole run at one instant."""

    at: float
    phase: Phase
    jobs: tuple[JobStatus, ...]
    slots: int
    executors: int
    rss_bytes: int
    heap_used_bytes: int
    heap_max_bytes: int
    decision: str = ""
    """The newest decision in words."""
    message: str = ""
    """What the run itself has to tell: a demo's scenes, trouble in one of its loops."""


@dataclass(frozen=True, slots=True)
class RunHeader:
    """What a run is, written once at its start."""

    run: str
    pipeline: str
    file: str
    profile: str
    strategy: str
    started_at: float
    jobs: tuple[str, ...]
    edges: tuple[tuple[str, str, str], ...] = ()
    """(writer, topic, reader); an empty writer or reader is the world outside."""


@dataclass(frozen=True, slots=True)
class RunEvent:
    """Something that happened in a run: a failure, a restart, a drain, a change that was made."""

    at: float
    kind: str
    text: str
    job: str = ""
    cause: str = ""
    """Id of the decision that led to it."""
    details: str = ""
    """Kept whole: an error's full text."""


@dataclass(frozen=True, slots=True)
class RunHistory:
    """What a run's journal holds."""

    header: RunHeader
    statuses: tuple[RunStatus, ...] = ()
    decisions: tuple[Decision, ...] = ()
    events: tuple[RunEvent, ...] = ()


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at: `doctor` and `validate` print these."""

    name: str
    level: Literal["ok", "warning", "problem"]
    text: str
    remedy: str = ""
    place: str = ""
    """file:line, where there is one."""
    facts: Mapping[str, str] = field(default_factory=dict[str, str])


def problem_of(error: SpecError, name: str = "") -> Check:
    """An error as a finding: what is wrong, what to do and where stand apart, each once."""
    kind, _, value = name.partition(" ")
    about = error.field.removeprefix(f"{kind} {value!r} ")
    text = (
        error.problem
        if (about, error.value) == (kind, value)
        else f"{about} = {error.value!r} {error.problem}"
    )
    return Check(name or error.field, "problem", text, error.remedy, error.place)
