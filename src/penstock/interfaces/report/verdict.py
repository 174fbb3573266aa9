"""Says in words how a run went: what changed, whether jobs keep up, what went wrong. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.model.decisions import Decision, ScaleThreads
from penstock.model.status import JobStatus, RunHistory, RunStatus
from penstock.model.units import format_seconds

_KEEPS_UP = 0.9
"""Share of what is offered that a job must take in to be called keeping up: windows of two sides never end together."""


def thread_path(history: RunHistory, job: str) -> list[int]:
    """The job's threads, each number once in a row."""
    path: list[int] = []
    for status in history.statuses:
        for each in status.jobs:
            if each.job == job and (not path or path[-1] != each.threads):
                path.append(each.threads)
    return path


def changing_decisions(decisions: Sequence[Decision]) -> list[Decision]:
    """Those that did something, or that alert."""
    return [d for d in decisions if d.actions or d.verdict in ("alert", "roll_back")]


def last_running(history: RunHistory) -> RunStatus | None:
    """The last status before the end began: after it, rates fall because nothing is read any more."""
    running = [status for status in history.statuses if status.phase == "running"]
    return running[-1] if running else (history.statuses[-1] if history.statuses else None)


def describe_run(history: RunHistory) -> list[str]:
    """The verdict, a sentence for each thing worth knowing."""
    last = last_running(history)
    if last is None:
        return ["The run ended before anything was measured."]
    return [sentence for sentence in (_sizes(history), _pace(last), _trouble(history, last)) if sentence]


def _sizes(history: RunHistory) -> str:
    moved: list[str] = []
    for job in history.header.jobs:
        path = thread_path(history, job)
        if len(path) > 1:
            moved.append(
                f"{job} went {' → '.join(map(str, path if len(path) <= 6 else [*path[:3], '…', *path[-2:]]))} threads"
            )
    rounds = sum(1 for d in history.decisions if any(isinstance(a, ScaleThreads) for a in d.actions))
    if not moved:
        return "No job changed its size."
    by = f", in {rounds} decision{'' if rounds == 1 else 's'}" if rounds else ""
    return f"{_join(moved)}{by}."


def _pace(last: RunStatus) -> str:
    behind = [job for job in last.jobs if _is_behind(job)]
    if not behind:
        lags = [job.lag_seconds for job in last.jobs if math.isfinite(job.lag_seconds)]
        worst = f", no more than {format_seconds(max(lags))} behind" if lags else ""
        return f"At the end every job kept up{worst}."
    told = [
        f"{job.job} took in {_share(job)} of what was offered and lagged {format_seconds(job.lag_seconds)}"
        for job in behind
    ]
    return f"At the end {_join(told)}."


def _is_behind(job: JobStatus) -> bool:
    offered, taken = job.rate_offered, job.rate_in
    if job.lag_seconds == math.inf:
        return True
    if not (math.isfinite(offered) and math.isfinite(taken)) or offered <= 0:
        return False
    return taken < _KEEPS_UP * offered and job.lag_seconds > 3 * max(job.batch_seconds, 1.0)


def _share(job: JobStatus) -> str:
    if not (math.isfinite(job.rate_in) and job.rate_offered > 0):
        return "none"
    return f"{100 * job.rate_in / job.rate_offered:.0f}%"


def _trouble(history: RunHistory, last: RunStatus) -> str:
    parts: list[str] = []
    end = history.statuses[-1]
    failed = [job.job for job in end.jobs if job.state in ("failed", "fenced")]
    restarts = sum(job.restarts for job in end.jobs)
    letters = sum(job.dead_letters for job in end.jobs)
    if failed:
        parts.append(f"failed: {_join(failed)}")
    if restarts:
        parts.append(
            f"tasks were restarted {restarts} times" if restarts > 1 else "a task was restarted once"
        )
    if letters:
        parts.append(f"{letters:,} records did not parse and went to dead letters")
    alerts = [d.reason for d in history.decisions if d.verdict == "alert"]
    if alerts:
        parts.append(f"last alert: {alerts[-1].rstrip('.')}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + "." if text else ""


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
