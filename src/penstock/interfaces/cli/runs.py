"""Commands about runs that were: list them, and make a report of one."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from penstock.interfaces.cli.output import plain_value, show
from penstock.interfaces.cli.tools import HERE, Output, OutputKind, Project, tools_of
from penstock.interfaces.report.page import write_report


def runs(ctx: typer.Context, project: Project = HERE, output: Output = OutputKind.TABLE) -> None:
    """List the project's runs, newest first.

    Example: penstock runs -o json
    """
    headers = tools_of(ctx).services.runs(project).runs()
    if output is OutputKind.JSON:
        show([plain_value(header) for header in headers], output)
        return
    rows = [
        {
            "run": header.run,
            "pipeline": header.pipeline,
            "started": format_instant(header.started_at),
            "strategy": header.strategy,
            "profile": header.profile,
            "jobs": ", ".join(header.jobs),
        }
        for header in headers
    ]
    show(rows, output, empty="No run yet; start one with `penstock run`.")


def report(
    ctx: typer.Context,
    run: Annotated[str | None, typer.Argument(help="A run's id; the newest when none is given.")] = None,
    target: Annotated[Path, typer.Option("--to", help="The file to write.")] = Path("report.html"),
    project: Project = HERE,
) -> None:
    """Write a run's report: one HTML file that opens offline.

    Example: penstock report --to out.html
    """
    write_report(tools_of(ctx).services.runs(project).history(run), target)
    typer.echo(str(target))


def format_instant(seconds: float) -> str:
    """`2026-03-01 12:00:05 UTC`."""
    try:
        return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "-"
