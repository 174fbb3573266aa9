"""`penstock probe`: what a run measures of its jobs, from its journal and its topics."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group, RenderableType
from rich.live import Live
from rich.text import Text

from penstock.interfaces.cli.output import console, make_table, plain_value, show_json
from penstock.interfaces.cli.probe_rows import (
    WIDE_ONLY,
    Seen,
    backlog_rows,
    container_rows,
    job_rows,
    stage_rows,
    sum_partitions,
)
from penstock.interfaces.cli.tools import HERE, Profile, Project, Tools, tools_of
from penstock.interfaces.cli.watch import Interrupts
from penstock.interfaces.states import format_clock
from penstock.model.units import parse_seconds

_AGAIN_SECONDS = 2.0


class ProbeOutput(StrEnum):
    TABLE = "table"
    WIDE = "wide"
    JSON = "json"


def probe(  # noqa: PLR0913 - one parameter per option
    ctx: typer.Context,
    run: Annotated[
        str | None, typer.Option("--run", help="A run's id; the newest when none is given.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", "-w", help="Again and again, until the run ends or Ctrl-C.")
    ] = False,
    over: Annotated[str, typer.Option(help="Measured over the newest so long.")] = "30s",
    project: Project = HERE,
    profile: Profile = None,
    output: Annotated[
        ProbeOutput, typer.Option("--output", "-o", help="A table, a wide one with all columns, or json.")
    ] = ProbeOutput.TABLE,
) -> None:
    """Print what a run measures of jobs, stages and memory.

    The guide explains each column ("What the probe measures"). Names end with their unit; rates are per second.

    Example: penstock probe -w
    """
    tools = tools_of(ctx)
    runs = tools.services.runs(project, profile)
    header = runs.history(run).header
    seen = Seen(header, parse_seconds("--over", over))
    position = 0
    with (
        Interrupts() as interrupts,
        Live(console=console(), auto_refresh=False) as live,
    ):
        while True:
            entries, position = runs.follow(header.run, position)
            seen.take(entries)
            tables = _tables(tools, project, seen)
            if output is ProbeOutput.JSON:
                live.stop()
                show_json(plain_value({"run": header.run, "at": seen.at, **tables}))
            else:
                live.update(_draw(seen, tables, wide=output is ProbeOutput.WIDE), refresh=True)
            if not watch or seen.over or interrupts.count:
                return
            interrupts.wait(_AGAIN_SECONDS)


def _tables(tools: Tools, project: Path, seen: Seen) -> dict[str, list[dict[str, object]]]:
    topics = tools.services.topics(project, seen.header.profile, make=False)
    try:
        backlog = backlog_rows(seen.header, topics)
    finally:
        topics.close()
    return {
        "jobs": job_rows(seen),
        "stages": stage_rows(seen),
        "container": container_rows(seen),
        "backlog": backlog,
    }


def _draw(seen: Seen, tables: dict[str, list[dict[str, object]]], *, wide: bool) -> RenderableType:
    header = seen.header
    clock = format_clock(seen.at - header.started_at)
    parts: list[RenderableType] = [
        Text(
            f"{header.pipeline}, run {header.run} at {clock}; over the newest {seen.over_seconds:g} s",
            style="bold",
        )
    ]
    shown = tables if wide else {**tables, "backlog": sum_partitions(tables["backlog"])}
    for name, rows in shown.items():
        parts.append(Text(f"\n{name}", style="cyan"))
        columns = [column for column in rows[0] if wide or column not in WIDE_ONLY] if rows else []
        parts.append(make_table(rows, columns) if rows else Text("nothing measured yet"))
    return Group(*parts)
