"""`penstock run` and `penstock demo`: start a pipeline, watch it, end it, and leave a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from penstock.interfaces.cli.errors import STOPPED_CODE
from penstock.interfaces.cli.output import console
from penstock.interfaces.cli.tools import HERE, PIPELINE, Profile, Project, parse_pairs, tell, tools_of
from penstock.interfaces.cli.views import LiveView, PlainView, View, draw_jobs
from penstock.interfaces.cli.watch import AT_ONCE, Interrupts, watch
from penstock.interfaces.report.page import write_report
from penstock.interfaces.states import LEGEND, describe_memory, format_clock
from penstock.model.errors import SpecError
from penstock.model.status import RunEvent, RunHeader, RunStatus
from penstock.model.units import parse_seconds
from penstock.ports.services import Run, RunRequest

REPORT = "report.html"
_NO_LIVE = typer.Option("--plain", "--no-live", help="A line per change instead of the live view.")


def run(  # noqa: PLR0913 - one parameter per option
    ctx: typer.Context,
    pipeline: Annotated[Path | None, PIPELINE] = None,
    project: Project = HERE,
    profile: Profile = None,
    strategy: Annotated[
        str, typer.Option(help="penstock, ds2, dhalion, spark_dynamic_allocation or static.")
    ] = "penstock",
    for_: Annotated[str | None, typer.Option("--for", help="Drain and end after this time, like 2m.")] = None,
    report: Annotated[Path | None, typer.Option(help="Also write the HTML report here.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, like spark.slots=8; may be repeated.")
    ] = None,
    available_now: Annotated[
        bool, typer.Option("--available-now", help="Work through what is there, then end.")
    ] = False,
    plain: Annotated[bool, _NO_LIVE] = False,
) -> None:
    """Run a pipeline here and keep it the right size.

    Ctrl-C drains: every job finishes its batch and commits. Ctrl-C again stops at once. LAG is the backlog divided by
    the best processing rate known of the job's present threads; "-" while none is known.

    Example: penstock run examples/wordcount --for 2m --report out.html
    """
    tools = tools_of(ctx)
    file = pipeline or project
    for_seconds = None if for_ is None else parse_seconds("--for", for_)
    _check_target(report)
    request = RunRequest(
        file, profile, strategy, available_now, parse_pairs("--set", set_ or [], "spark.slots=8")
    )
    started = tools.services.start
    _carry_out(lambda: started(request, tell), for_seconds, report, plain)


def demo(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where the demo keeps its files.")] = Path("penstock-demo"),
    report: Annotated[Path | None, typer.Option(help="Also write the HTML report here.")] = None,
    plain: Annotated[bool, _NO_LIVE] = False,
) -> None:
    """Watch a word count take the right size by itself.

    It goes up when the source's rate rises and down when it halves, and ends in about 2 minutes.

    Example: penstock demo
    """
    tools = tools_of(ctx)
    _check_target(report)
    _carry_out(lambda: tools.services.demo(folder, tell), None, report, plain)


def _check_target(report: Path | None) -> None:
    """A report that can't be written is said before the run, not after it."""
    if report is not None and report.is_dir():
        raise SpecError("--report", str(report), "is a folder", f"name a file, like {report / REPORT}")
    if report is not None and not report.absolute().parent.is_dir():
        raise SpecError(
            "--report", str(report), "is in a folder that is not there", "make the folder, or name another"
        )


def _carry_out(
    start: Callable[[], Run],
    for_seconds: float | None,
    report: Path | None,
    plain: bool,
) -> None:
    with Interrupts() as interrupts:
        running = start()
        interrupts.take_over()
        try:
            with _view(running.header, plain) as view:
                status, unclean = watch(running, view, for_seconds, interrupts)
        finally:
            running.close()
    history = running.history()
    for target in (running.folder / REPORT, *([report] if report else [])):
        write_report(history, target)
    _close_out(console(), running.header, status)
    typer.echo(f"\nReport: {report or running.folder / REPORT}")
    for line in _troubles(history.events):
        typer.echo(line)
    if status.phase == "failed":
        tell(_why(status))
        raise typer.Exit(1)
    if unclean:
        tell(unclean)
    if interrupts.count > 1:
        raise typer.Exit(STOPPED_CODE)


def _view(header: RunHeader, plain: bool) -> View:
    return PlainView(header) if plain or not console().is_terminal else LiveView(header)


def _close_out(to: Console, header: RunHeader, status: RunStatus) -> None:
    """The table at the end."""
    clock = format_clock(status.at - header.started_at)
    ended = "stopped at once" if status.message == AT_ONCE else status.phase
    to.print(f"\n{header.pipeline}: {ended} after {clock} (run {header.run}, strategy {header.strategy})")
    to.print(draw_jobs(status, to.width))
    to.print(LEGEND)
    to.print(describe_memory(status))
    if status.decision:
        to.print(f"Last decision: {status.decision}", markup=False)


def _troubles(events: Sequence[RunEvent]) -> list[str]:
    """What went wrong, each once, with how often."""
    counts = Counter(e.text for e in events if e.kind in ("failed", "fenced", "given_up", "check", "alert"))
    return [text if times == 1 else f"{text} ({times} times)" for text, times in counts.items()]


def _why(status: RunStatus) -> str:
    reasons = [
        f"{job.job}: {job.note.rstrip('.')}"
        for job in status.jobs
        if job.state in ("failed", "fenced") and job.note
    ]
    return "The run failed" + (f": {'; '.join(reasons)}" if reasons else "; its events say why") + "."
