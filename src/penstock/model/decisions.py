"""What is decided and why: a decision holds every number that led to it, so that it can be explained and replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

Verdict = Literal["hold", "scale", "roll_back", "alert", "observe"]

Limit = Literal[
    "none",
    "overhead-bound",
    "state partitions",
    "hot unit",
    "infeasible interval",
    "max_threads",
    "min_threads",
    "partitions",
    "slots",
    "unscalable",
    "set aside",
]


@dataclass(frozen=True, slots=True)
class StageNeed:
    """One stage's part in the batch-time formula."""

    ordinal: int
    useful_seconds: float
    """U_s: useful seconds for one batch of L seconds of demand."""
    ceiling: int | None
    """m_s: its Spark tasks where they are fixed."""
    unit_seconds: float
    """Seconds of its largest piece that can't be split."""
    task_seconds: float = 0.0
    """Useful seconds that each of its Spark tasks costs whatever it carries (part of U_s)."""
    record_seconds: float = 0.0
    """Useful seconds for each record that the job takes in (part of U_s)."""
    unit_share: float = 0.0
    """Share of the records' useful time in its largest piece."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """Every number behind one job's proposal. NaN where a number was not known."""

    target_rate: float
    """Records per second that must be taken in, from demand (without the backlog's share)."""
    backlog_records: float
    backlog_rate: float
    """B / t: the backlog's share of demand, records per second."""
    true_rate: float
    """lambda_p: records per second of useful time, per instance."""
    observed_rate: float
    selectivity: Mapping[str, float]
    """Records out per record in, per output topic."""
    overhead_seconds: float
    """h."""
    objective_seconds: float
    """L."""
    predicted_batch_seconds: float
    """D(p) at the proposed size."""
    stages: tuple[StageNeed, ...] = ()
    target_correction: float = 1.0
    """Factor of the target-ratio rule; 1 when not applied."""
    window_age_seconds: float = 0.0
    """Age of the true rates used, when carried over."""


@dataclass(frozen=True, slots=True)
class JobProposal:
    """What one strategy says of one job in one round."""

    job: str
    threads: int
    """Threads now."""
    proposed: int
    """Threads the formula asks for, inside the job's own limits; what the slots grant of them is in the action."""
    steady: int
    """The same without the backlog's share: where it returns once the backlog is gone."""
    limit: Limit
    """What stands in the way of more or fewer: of the formula, of the job's own limits, or of the slots."""
    reason: str
    """One sentence for people."""
    formula: str
    """The formula with its values in it."""
    evidence: Evidence


@dataclass(frozen=True, slots=True)
class ScaleThreads:
    """Action: let a job use another number of threads from its next batch on (rung 2)."""

    job: str
    threads: int
    cause: str


@dataclass(frozen=True, slots=True)
class ScaleExecutors:
    """Action: let a container have another number of executors (rung 3)."""

    executors: int
    cause: str


Action = ScaleThreads | ScaleExecutors


@dataclass(frozen=True, slots=True)
class Decision:
    """One round of one strategy over one pipeline."""

    id: str
    """Cause id: actions, events and log entries that follow carry it."""
    at: float
    strategy: str
    verdict: Verdict
    reason: str
    """One sentence for people."""
    proposals: Sequence[JobProposal]
    """Per job, in the order of the graph; built from columns when they are read."""
    actions: tuple[Action, ...] = ()
    skipped: tuple[str, ...] = field(default_factory=tuple[str, ...])
    """Rungs, jobs or numbers that were passed over, each with its reason."""
