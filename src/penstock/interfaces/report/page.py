"""Puts a run's report together: one HTML file without scripts, and without anything from elsewhere."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from html import escape
from importlib.resources import files
from pathlib import Path

from penstock.interfaces.report.graph import draw_graph
from penstock.interfaces.report.plot import Plot, draw_plot
from penstock.interfaces.report.plots import backlog_plot, end_seconds, job_plots, memory_plot, slots_plot
from penstock.interfaces.report.scales import format_moment
from penstock.interfaces.report.verdict import changing_decisions, describe_run, last_status, thread_path
from penstock.interfaces.states import describe_graph, job_cells
from penstock.model.decisions import Decision, JobProposal, ScaleExecutors, ScaleThreads
from penstock.model.errors import EnvironmentProblem
from penstock.model.status import JobStatus, RunEvent, RunHistory
from penstock.model.units import format_bytes, format_seconds

_DECISIONS_MOST = 200
"""Quiet decisions listed in full; older ones are in the journal."""
_CELLS = ("state", "threads", "in", "out", "offered", "capacity", "backlog", "lag", "batch", "batches")


def write_report(history: RunHistory, target: Path) -> None:
    """The report as a file, whole or not at all."""
    beside = target.with_name(f".{target.name}.part")
    try:
        beside.write_text(render_report(history), encoding="utf-8")
        beside.replace(target)
    except OSError as error:
        beside.unlink(missing_ok=True) if beside.parent.is_dir() else None
        raise EnvironmentProblem(
            f"The report could not be written to {target} ({error.strerror}); name another file."
        ) from error


def render_report(history: RunHistory) -> str:
    """The report as text."""
    header = history.header
    style = (files("penstock.interfaces.report") / "page.css").read_text(encoding="utf-8")
    body = "\n".join(
        [
            _head(history),
            *(_job_section(history, job) for job in header.jobs),
            _section("Container", "", [memory_plot(history), slots_plot(history)]),
            _decisions(history),
            _events(history),
            _foot(history),
        ]
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(header.pipeline)}: {escape(header.run)}</title>\n<style>\n{style}</style></head>\n"
        f"<body><main>\n{body}\n</main></body></html>\n"
    )


def _head(history: RunHistory) -> str:
    header = history.header
    first, *rest = describe_run(history)
    graph = draw_graph(header, {job: _threads_note(history, job) for job in header.jobs})
    if not graph:
        graph = "".join(f"<p class=chain>{escape(line)}</p>" for line in describe_graph(header))
    cards = "".join(
        f"<div><b>{escape(value)}</b><span>{escape(name)}</span></div>" for name, value in _cards(history)
    )
    return (
        f"<header><p class=over>{escape(header.pipeline)}</p><h1>{escape(first)}</h1>"
        f"<p class=lead>{escape(' '.join(rest))}</p>{graph}<div class=cards>{cards}</div></header>"
    )


def _threads_note(history: RunHistory, job: str) -> str:
    path = thread_path(history, job)
    shown = [str(n) for n in path] if len(path) <= 4 else [str(path[0]), "…", *(str(n) for n in path[-2:])]
    return f"{' → '.join(shown)} {'thread' if path == [1] else 'threads'}" if path else ""


def _cards(history: RunHistory) -> list[tuple[str, str]]:
    lags = [j.lag_seconds for s in history.statuses for j in s.jobs if math.isfinite(j.lag_seconds)]
    peak = max((s.rss_bytes for s in history.statuses), default=0)
    most = max((sum(j.threads for j in s.jobs) for s in history.statuses), default=0)
    return [
        ("length of the run", format_seconds(end_seconds(history))),
        ("strategy", history.header.strategy),
        ("decisions that changed something", str(sum(1 for d in history.decisions if d.actions))),
        ("largest lag", format_seconds(max(lags)) if lags else "-"),
        ("most threads at once", str(most)),
        ("peak memory", format_bytes(peak) if peak else "-"),
    ]


def _job_section(history: RunHistory, job: str) -> str:
    rates, lag, threads = job_plots(history, job)
    last = last_status(history)
    held = next((j for j in last.jobs if j.job == job), None) if last else None
    return _section(
        job,
        _job_line(held) if held else "Nothing was measured.",
        [rates, threads, lag, backlog_plot(history, job)],
    )


def _job_line(job: JobStatus) -> str:
    cells = job_cells(job)
    parts = [f"<span><i>{name}</i> {escape(cells[name])}</span>" for name in _CELLS]
    note = f"<p class=quiet>{escape(job.note)}</p>" if job.note else ""
    return f"<p class=facts>{''.join(parts)}</p>{note}"


def _section(title: str, text: str, plots: list[Plot]) -> str:
    drawn = "".join(f"<figure>{draw_plot(plot)}</figure>" for plot in plots)
    return f"<section><h2>{escape(title)}</h2>{text}<div class=plots>{drawn}</div></section>"


def _decisions(history: RunHistory) -> str:
    changes = changing_decisions(history.decisions)
    quiet = [d for d in history.decisions if d not in changes]
    start = history.header.started_at
    told = (
        "".join(_decision(d, start, only_changed=True) for d in changes)
        or "<p class=quiet>No decision changed anything.</p>"
    )
    rest = ""
    if quiet:
        shown = quiet[-_DECISIONS_MOST:]
        more = f" (the newest {len(shown)})" if len(shown) < len(quiet) else ""
        rows = "".join(_decision(d, start, only_changed=False) for d in shown)
        rest = f"<details><summary>{len(quiet)} decisions to leave things as they are{more}</summary>{rows}</details>"
    return f"<section><h2>Decisions</h2>{told}{rest}</section>"


def _decision(decision: Decision, start: float, *, only_changed: bool) -> str:
    changed = {a.job: a.threads for a in decision.actions if isinstance(a, ScaleThreads)}
    proposals = [p for p in decision.proposals if not only_changed or p.job in changed or not changed]
    executors = [a.executors for a in decision.actions if isinstance(a, ScaleExecutors)]
    extra = f"<p>executors → {executors[-1]}</p>" if executors else ""
    skipped = "".join(f"<li>{escape(text)}</li>" for text in decision.skipped)
    passed = f"<p class=quiet>Passed over:</p><ul class=quiet>{skipped}</ul>" if skipped else ""
    return (
        f"<article><p class=when><b>{format_moment(decision.at - start)}</b> <em class={decision.verdict}>"
        f"{escape(decision.verdict.replace('_', ' '))}</em> {escape(decision.reason)}</p>"
        f"<table>{''.join(_proposal(p, changed.get(p.job)) for p in proposals)}</table>{extra}{passed}</article>"
    )


def _proposal(proposal: JobProposal, to: int | None) -> str:
    """`to`: threads that the job was given; None where it keeps what it has."""
    changed = to is not None
    size = f"{proposal.threads} → {to}" if changed else str(proposal.threads)
    steady = ""
    if changed and proposal.steady != proposal.proposed:
        steady = f" <span class=quiet>{proposal.steady} when the backlog is gone.</span>"
    limit = "" if proposal.limit == "none" else f" <span class=limit>limit: {escape(proposal.limit)}</span>"
    return (
        f"<tr><th>{escape(proposal.job)}</th><td class=size>{escape(size)}</td>"
        f"<td>{escape(proposal.reason)}{steady}{limit}<pre>{escape(proposal.formula)}</pre></td></tr>"
    )


def _events(history: RunHistory) -> str:
    if not history.events:
        return ""
    start = history.header.started_at
    rows = "".join(_event(event, start) for event in history.events)
    return f"<section><h2>Events</h2><table class=events>{rows}</table></section>"


def _event(event: RunEvent, start: float) -> str:
    whole = (
        f"<details><summary>whole text</summary><pre>{escape(event.details)}</pre></details>"
        if event.details
        else ""
    )
    return (
        f"<tr><td>{format_moment(event.at - start)}</td><td>{escape(event.job)}</td>"
        f"<td>{escape(event.kind)}</td><td>{escape(event.text)}{whole}</td></tr>"
    )


def _foot(history: RunHistory) -> str:
    header = history.header
    started = datetime.fromtimestamp(header.started_at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return (
        f"<footer>Run {escape(header.run)}, started {started}, profile {escape(header.profile)}, "
        f"pipeline {escape(Path(header.file).name)}. Times are minutes:seconds from the start. "
        "A flag marks a decision that changed a job; point at it for its reason.</footer>"
    )
