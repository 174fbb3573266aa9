"""Which plots a run has: per job its rates, lag and threads, and the container's memory. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable

from penstock.interfaces.report.plot import Mark, Plot, Series
from penstock.interfaces.report.scales import Point, format_moment
from penstock.model.decisions import ScaleThreads
from penstock.model.status import JobStatus, RunHistory, RunStatus

_GB, _MB = 1 << 30, 1 << 20


def end_seconds(history: RunHistory) -> float:
    """From the start to the last thing known."""
    moments = (
        [s.at for s in history.statuses] + [d.at for d in history.decisions] + [e.at for e in history.events]
    )
    known = [at for at in moments if math.isfinite(at)]
    return max(1.0, max(known, default=0.0) - history.header.started_at)


def job_plots(history: RunHistory, job: str) -> tuple[Plot, Plot, Plot]:
    """Rates, lag, threads; the job's changes are marked in each."""
    end, marks = end_seconds(history), job_marks(history, job)

    def line(pick: Callable[[JobStatus], float]) -> tuple[Point, ...]:
        return _job_points(history, job, pick)

    rates = Plot(
        "Rates",
        "records per second",
        (
            Series("capacity", line(lambda j: j.capacity), "c", "step", dash="2 3", sets_scale=False),
            Series("offered", line(lambda j: j.rate_offered), "b", dash="7 4"),
            Series("taken in", line(lambda j: j.rate_in), "a"),
        ),
        end,
        marks,
    )
    lag = Plot(
        "Lag",
        "seconds",
        (
            Series("slo_lag", line(lambda j: j.slo_lag_seconds), "c", "step", dash="2 3", sets_scale=False),
            Series("time lagged", line(lambda j: j.lag_seconds), "d", filled=True),
        ),
        end,
        marks,
    )
    threads = Plot(
        "Threads",
        "count",
        (
            Series("proposed", line(lambda j: j.proposed), "c", "step", dash="4 3"),
            Series("now", line(lambda j: j.threads), "a", "step"),
        ),
        end,
        marks,
        show_labels=True,
    )
    return rates, lag, threads


def backlog_plot(history: RunHistory, job: str) -> Plot:
    """Records not yet committed."""
    points = _job_points(history, job, lambda j: j.backlog)
    series = Series("not yet committed", points, "e", filled=True)
    return Plot("Backlog", "records", (series,), end_seconds(history), job_marks(history, job))


def memory_plot(history: RunHistory) -> Plot:
    """Memory of the container, in the unit that fits it."""
    most = max((max(s.rss_bytes, s.heap_max_bytes) for s in history.statuses), default=0)
    unit, name = (_GB, "GB") if most >= _GB else (_MB, "MB")

    def line(pick: Callable[[RunStatus], float]) -> tuple[Point, ...]:
        start = history.header.started_at
        return tuple((s.at - start, pick(s) / unit if pick(s) else math.nan) for s in history.statuses)

    return Plot(
        "Memory",
        name,
        (
            Series("all processes", line(lambda s: s.rss_bytes), "a", filled=True),
            Series("heap used", line(lambda s: s.heap_used_bytes), "b", dash="7 4"),
            Series("heap at most", line(lambda s: s.heap_max_bytes), "c", "step", dash="2 3"),
        ),
        end_seconds(history),
    )


def slots_plot(history: RunHistory) -> Plot:
    """Threads of all jobs beside the slots they share."""
    start = history.header.started_at
    busy = tuple((s.at - start, float(sum(j.threads for j in s.jobs))) for s in history.statuses)
    slots = tuple((s.at - start, float(s.slots) if s.slots else math.nan) for s in history.statuses)
    return Plot(
        "Slots",
        "count",
        (Series("slots", slots, "c", "step", dash="2 3"), Series("threads of all jobs", busy, "a", "step")),
        end_seconds(history),
    )


def job_marks(history: RunHistory, job: str) -> tuple[Mark, ...]:
    """A mark at each decision that changed this job."""
    marks: list[Mark] = []
    for decision in history.decisions:
        for action in decision.actions:
            if not isinstance(action, ScaleThreads) or action.job != job:
                continue
            before = next((p.threads for p in decision.proposals if p.job == job), None)
            label = f"{'?' if before is None else before} → {action.threads}"
            at = decision.at - history.header.started_at
            marks.append(Mark(at, label, f"{format_moment(at)} {label} threads: {decision.reason}"))
    return tuple(marks)


def _job_points(history: RunHistory, job: str, pick: Callable[[JobStatus], float]) -> tuple[Point, ...]:
    start = history.header.started_at
    return tuple(
        (status.at - start, float(pick(each)))
        for status in history.statuses
        for each in status.jobs
        if each.job == job
    )
