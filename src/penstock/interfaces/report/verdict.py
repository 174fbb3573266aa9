"""Says in words how a run went: who failed, who was later than its owner accepts and for how long, what changed.

It reads the same statuses that the plots show, the last one, after the drain, included. Pure.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from penstock.model.decisions import Decision, ScaleThreads
from penstock.model.status import JobStatus, RunHistory, RunStatus
from penstock.model.units import format_seconds


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


def last_status(history: RunHistory) -> RunStatus | None:
    """How the run ended. Its rates are those from before the end began: then nothing is read any more."""
    if not history.statuses:
        return None
    end = history.statuses[-1]
    running = next((s for s in reversed(history.statuses) if s.phase == "running"), end)
    before = {job.job: job for job in running.jobs}
    return replace(end, jobs=tuple(_with_rates(job, before.get(job.job, job)) for job in end.jobs))


def _with_rates(job: JobStatus, before: JobStatus) -> JobStatus:
    return replace(
        job,
        rate_in=before.rate_in,
        rate_out=before.rate_out,
        rate_offered=before.rate_offered,
        capacity=before.capacity,
        batch_seconds=before.batch_seconds,
    )


def describe_run(history: RunHistory) -> list[str]:
    """The verdict, a sentence for each thing worth knowing; what went wrong comes first."""
    end = last_status(history)
    if end is None:
        return ["The run ended before anything was measured."]
    failed = [job.job for job in end.jobs if job.state in ("failed", "fenced")]
    late = [told for job in end.jobs if (told := _lateness(history, job))]
    pace = f"{_join(late)}." if late else ""
    calm = "" if late else _calm(history, failed)
    return [text for text in (_failure(end, failed), pace, _sizes(history), calm, _trouble(history)) if text]


def _failure(end: RunStatus, failed: Sequence[str]) -> str:
    if failed:
        return f"{_join(failed)} failed."
    return "The run failed." if end.phase == "failed" else ""


def _lateness(history: RunHistory, end: JobStatus) -> str:
    """For how long a job was later than its slo_lag, and by how much; empty when it never was."""
    most, seconds = 0.0, 0.0
    for status, following in pairwise((*history.statuses, history.statuses[-1])):
        lag = next((j.lag_seconds for j in status.jobs if j.job == end.job), math.nan)
        if math.isfinite(lag) and lag > end.slo_lag_seconds:
            most, seconds = max(most, lag), seconds + max(0.0, following.at - status.at)
    if not most:
        return ""
    still = ", and still at the end" if seconds and end.lag_seconds > end.slo_lag_seconds else ""
    how_long = f"for {format_seconds(seconds)}" if seconds else "at the end"
    objective = format_seconds(end.slo_lag_seconds)
    return f"{end.job} was later than its slo_lag of {objective} {how_long}, at most {format_seconds(most)} behind{still}"


def _calm(history: RunHistory, failed: Sequence[str]) -> str:
    """What may be said of the jobs that did not fail, when none was late."""
    lags = [
        job.lag_seconds
        for status in history.statuses
        for job in status.jobs
        if job.job not in failed and math.isfinite(job.lag_seconds)
    ]
    if not lags:
        return ""
    who = "No other job" if failed else "No job"
    return f"{who} was later than its slo_lag; the most was {format_seconds(max(lags))}."


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


def _trouble(history: RunHistory) -> str:
    parts: list[str] = []
    end = history.statuses[-1]
    restarts = sum(job.restarts for job in end.jobs)
    letters = sum(job.dead_letters for job in end.jobs)
    if restarts:
        parts.append(
            f"tasks were restarted {restarts} times" if restarts > 1 else "a task was restarted once"
        )
    if letters:
        parts.append(
            f"{letters:,} {'record' if letters == 1 else 'records'} did not parse and went to dead letters"
        )
    alerts = [d.reason for d in history.decisions if d.verdict == "alert"]
    if alerts:
        parts.append(f"last alert: {alerts[-1].rstrip('.')}")
    text = "; ".join(parts)
    return text[:1].upper() + text[1:] + "." if text else ""


def _join(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
