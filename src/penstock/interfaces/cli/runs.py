"""Commands about runs that were: list them, and make a report of one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.interfaces.cli.output import plain_value, show
from penstock.interfaces.cli.tools import HERE, Output, OutputKind, Profile, Project, tools_of
from penstock.interfaces.report.page import write_report
from penstock.interfaces.states import format_clock
from penstock.model.status import RunHeader, RunStatus

_SILENT_SECONDS = 10.0
"""A run says how it stands every second."""


def runs(
    ctx: typer.Context, project: Project = HERE, profile: Profile = None, output: Output = OutputKind.TABLE
) -> None:
    """List the project's runs, and how each ended.

    RESULT is the phase of its last status; `lost` is a run that ended without a word, as when it was killed.

    Example: penstock runs -o json
    """
    tools = tools_of(ctx)
    held, now = tools.services.runs(project, profile), tools.clock.now()
    found = [(header, held.last_status(header.run)) for header in held.runs()]
    if output is OutputKind.JSON:
        show([_as_row(header, last, now) for header, last in found], output)
        return
    rows = [
        {
            "run": header.run,
            "started": format_instant(header.started_at),
            "took": "-" if last is None else format_clock(last.at - header.started_at),
            "result": describe_result(last, now),
            "strategy": header.strategy,
            "profile": header.profile,
            "jobs": ", ".join(header.jobs),
        }
        for header, last in found
    ]
    show(rows, output, empty="No run yet; start one with `penstock run`.")


def _as_row(header: RunHeader, last: RunStatus | None, now: float) -> dict[str, Any]:
    end = None if last is None else last.at
    return {**plain_value(header), "last_at": end, "result": describe_result(last, now)}


def describe_result(last: RunStatus | None, now: float) -> str:
    """How a run ended; one that has not said so and has been silent for a while is lost."""
    if last is None:
        return "not started"
    if last.phase in ("ended", "failed"):
        return last.phase
    return last.phase if now - last.at < _SILENT_SECONDS else "lost"


def report(
    ctx: typer.Context,
    run: Annotated[str | None, typer.Argument(help="A run's id; the newest when none is given.")] = None,
    named: Annotated[str | None, typer.Option("--run", help="The same, as other commands take it.")] = None,
    target: Annotated[Path, typer.Option("--to", help="The file to write.")] = Path("report.html"),
    project: Project = HERE,
    profile: Profile = None,
) -> None:
    """Write a run's report: one HTML file that opens offline.

    Example: penstock report --to out.html
    """
    write_report(tools_of(ctx).services.runs(project, profile).history(run or named), target)
    typer.echo(str(target))


def format_instant(seconds: float) -> str:
    """`2026-03-01 12:00:05 UTC`."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "-"
