"""How a run is seen while it goes on: redrawn in a terminal, a line per change elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Protocol, Self

import typer
from rich.console import Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from penstock.interfaces.cli.output import console, make_table
from penstock.interfaces.states import (
    COLUMNS,
    describe_changes,
    describe_graph,
    describe_memory,
    format_clock,
    job_cells,
)
from penstock.model.status import JobStatus, RunHeader, RunStatus

_FRAME = 4
"""Characters of the frame around the picture."""
_KEYS = 6
"""Characters that stay free beside it: a terminal writes `^C` there, and a line that wraps would move the picture."""
_LEAST = 40
_STATE_STYLES = {"running": "green", "failed": "bold red", "fenced": "bold red", "restarting": "yellow"}


class View(Protocol):
    def __enter__(self) -> Self: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    def show(self, status: RunStatus) -> None: ...
    def say(self, text: str) -> None: ...


class PlainView:
    """Lines, for logs and pipes."""

    def __init__(self, header: RunHeader, echo: Callable[[str], None] = typer.echo) -> None:
        self._header, self._echo = header, echo
        self._last: RunStatus | None = None

    def __enter__(self) -> Self:
        for line in describe_graph(self._header):
            self._echo(line)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return None

    def show(self, status: RunStatus) -> None:
        clock = format_clock(status.at - self._header.started_at)
        for line in describe_changes(self._last, status, clock):
            self._echo(line)
        self._last = status

    def say(self, text: str) -> None:
        self._echo(text)


class LiveView:
    """One picture, redrawn in place."""

    def __init__(self, header: RunHeader, strategy_note: str = "") -> None:
        self._header, self._said = header, strategy_note
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False, transient=True)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.__exit__(kind, error, trace)

    def show(self, status: RunStatus) -> None:
        drawn = draw_run(self._header, status, self._said, self._console.width)
        self._live.update(drawn, refresh=True)

    def say(self, text: str) -> None:
        self._said = text


def draw_run(header: RunHeader, status: RunStatus, said: str = "", width: int = 240) -> Panel:
    """The whole picture of one instant, in a terminal of this many columns."""
    room = max(width - _KEYS, min(width, _LEAST))
    parts: list[Text | Table] = [Text(line, style="cyan") for line in describe_graph(header)]
    parts += [Text(""), draw_jobs(status, room - _FRAME), Text("")]
    notes = [job for job in status.jobs if job.note]
    parts += [Text(f"{job.job}: {job.note}", style=_note_style(job)) for job in notes]
    if status.message:
        parts.append(Text(status.message, style="yellow"))
    if status.decision:
        parts.append(Text.assemble(("last decision  ", "dim"), status.decision))
    parts.append(Text.assemble(("container      ", "dim"), describe_memory(status)))
    if said:
        parts.append(Text(said, style="bold yellow"))
    clock = format_clock(status.at - header.started_at)
    title = f"[bold]{header.pipeline}[/bold]  {status.phase}  {clock}"
    subtitle = f"strategy {header.strategy}, profile {header.profile}, run {header.run}; Ctrl-C drains"
    return Panel(
        Group(*parts), title=title, subtitle=subtitle, title_align="left", subtitle_align="left", width=room
    )


def draw_jobs(status: RunStatus, width: int = 240) -> Table:
    """The table of jobs, without the columns that can best be missed where the line is too short for all."""
    rows, columns = [job_cells(job) for job in status.jobs], list(COLUMNS)
    for missed in ("batches", "out", "batch", "offered", "capacity"):
        if _wide(rows, columns) > width:
            columns.remove(missed)
    table = make_table(rows, columns)
    for job, row in zip(status.jobs, table.rows, strict=True):
        row.style = _STATE_STYLES.get(job.state) if job.state != "running" else None
    return table


def _wide(rows: Sequence[Mapping[str, str]], columns: Sequence[str]) -> int:
    """Characters of the table's longest line."""
    return sum(2 + max(len(name), *(len(row[name]) for row in rows)) for name in columns)


def _note_style(job: JobStatus) -> str:
    return _STATE_STYLES["failed"] if job.state in ("failed", "fenced") else "dim"
