"""A run's state in words and cells: the same for the live view, plain lines, the closing table and the report. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from penstock.model.decisions import Action, ScaleThreads
from penstock.model.status import JobStatus, RunHeader, RunStatus
from penstock.model.units import format_bytes, format_rate, format_seconds

COLUMNS = (
    "job",
    "state",
    "in",
    "out",
    "offered",
    "capacity",
    "backlog",
    "lag",
    "threads",
    "batch",
    "batches",
)


LEGEND = (
    "in, out, offered: records per second; capacity: what the present threads carry;\n"
    "backlog: records not yet committed; lag: backlog / best processing rate known."
)


def job_cells(job: JobStatus) -> dict[str, str]:
    """One line of the table."""
    return {
        "job": job.job,
        "state": job.state + (f" ({job.restarts} restarts)" if job.restarts else ""),
        "in": format_rate(job.rate_in),
        "out": format_rate(job.rate_out),
        "offered": format_rate(job.rate_offered),
        "capacity": format_rate(job.capacity),
        "backlog": format_count(job.backlog),
        "lag": format_lag(job.lag_seconds),
        "threads": format_threads(job),
        "batch": format_lag(job.batch_seconds),
        "batches": f"{job.batches:,}",
    }


def format_threads(job: JobStatus) -> str:
    """Threads now, and what the newest decision asked for where it differs."""
    return str(job.threads) if job.proposed == job.threads else f"{job.threads} → {job.proposed}"


def count_threads(threads: int) -> str:
    """`1 thread`, `5 threads`."""
    return f"{threads} thread" if threads == 1 else f"{threads} threads"


def describe_action(action: Action) -> str:
    """What was done, in words."""
    if isinstance(action, ScaleThreads):
        return f"{action.job} has {count_threads(action.threads)} from its next batch on"
    return f"{action.executors} executors were asked for"


def format_lag(seconds: float) -> str:
    return "-" if math.isnan(seconds) else format_seconds(seconds)


def format_count(number: float) -> str:
    return f"{number:,.0f}" if math.isfinite(number) else "-"


def format_clock(seconds: float) -> str:
    """`02:05`, `1:02:05`."""
    whole = max(0, int(seconds)) if math.isfinite(seconds) else 0
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60:02}:{rest % 60:02}"


def describe_memory(status: RunStatus) -> str:
    """Memory and slots in one line."""
    busy = sum(job.threads for job in status.jobs)
    heap = f"heap {format_bytes(status.heap_used_bytes)} of {format_bytes(status.heap_max_bytes)}"
    executors = f", {status.executors} executors" if status.executors > 1 else ""
    return f"memory {format_bytes(status.rss_bytes)}, {heap}; {count_threads(busy)} on {status.slots} slots{executors}"


def describe_graph(header: RunHeader) -> list[str]:
    """The pipeline as chains: `sentences → split → words → count → counts`."""
    nexts: dict[str, list[tuple[str, str]]] = {}
    for writer, topic, reader in header.edges:
        nexts.setdefault(writer, []).append((topic, reader))
    drawn: set[tuple[str, str, str]] = set()
    lines: list[str] = []
    for writer in ("", *header.jobs):
        for topic, reader in nexts.get(writer, ()):
            if (writer, topic, reader) not in drawn:
                lines.append(_chain(nexts, drawn, writer, topic, reader))
    return lines or [", ".join(header.jobs)]


def _chain(
    nexts: dict[str, list[tuple[str, str]]],
    drawn: set[tuple[str, str, str]],
    writer: str,
    topic: str,
    reader: str,
) -> str:
    """One path from an edge on, along edges not drawn yet."""
    parts = [writer] if writer else []
    edge: tuple[str, str, str] | None = (writer, topic, reader)
    while edge is not None:
        drawn.add(edge)
        parts += [part for part in edge[1:] if part]
        here = edge[2]
        following = [(here, t, r) for t, r in nexts.get(here, ()) if here and (here, t, r) not in drawn]
        edge = following[0] if following else None
    return " → ".join(parts)


def describe_changes(before: RunStatus | None, now: RunStatus, clock: str) -> Sequence[str]:
    """A line for each thing that changed: phase, decision, and per job its state, threads, restarts, dead letters."""
    lines: list[str] = []
    if before is None or before.phase != now.phase:
        lines.append(f"{clock} {now.phase}")
    if now.message and (before is None or before.message != now.message):
        lines.append(f"{clock} {now.message}")
    if now.decision and (before is None or before.decision != now.decision):
        lines.append(f"{clock} decision: {now.decision}")
    known = {job.job: job for job in before.jobs} if before else {}
    for job in now.jobs:
        lines += [f"{clock} {job.job}: {text}" for text in _job_changes(known.get(job.job), job)]
    return lines


def _job_changes(before: JobStatus | None, job: JobStatus) -> list[str]:
    rates = (
        f"in {format_rate(job.rate_in)} of {format_rate(job.rate_offered)} offered, "
        f"capacity {format_rate(job.capacity)}, lag {format_lag(job.lag_seconds)}"
    )
    if before is None:
        return [f"{job.state}, {count_threads(job.threads)}"]
    texts: list[str] = []
    if job.state != before.state:
        note = f": {job.note}" if job.note and job.state in ("failed", "fenced", "restarting") else ""
        texts.append(f"{before.state} -> {job.state}{note}")
    if job.threads != before.threads:
        texts.append(f"threads {before.threads} -> {job.threads} ({rates})")
    elif job.proposed not in (job.threads, before.proposed):
        texts.append(f"{count_threads(job.proposed)} proposed, {job.threads} now ({rates})")
    if job.restarts > before.restarts:
        texts.append(f"restart {job.restarts}")
    if job.dead_letters > before.dead_letters:
        texts.append(
            f"{_records(job.dead_letters - before.dead_letters)} did not parse and went to dead letters"
        )
    return texts


def _records(number: int) -> str:
    return f"{number:,} record" if number == 1 else f"{number:,} records"
