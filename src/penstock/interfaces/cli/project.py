"""Commands about a project as it lies there: make one, check one, check the machine, fetch jars."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.interfaces.cli.output import show
from penstock.interfaces.cli.tools import HERE, PIPELINE, Output, OutputKind, Profile, Project, tell, tools_of
from penstock.model.errors import EnvironmentProblem, MissingError, SpecError
from penstock.model.status import Check
from penstock.model.units import format_bytes
from penstock.ports.services import JobMemory


class BeginAt(StrEnum):
    EARLIEST = "earliest"
    LATEST = "latest"


_MARKS = {"ok": "ok", "warning": "WARNING", "problem": "PROBLEM"}


def init(
    ctx: typer.Context,
    folder: Annotated[Path, typer.Argument(help="Where; files that are there stay as they are.")],
) -> None:
    """Write a working project.

    A pipeline with a function of your own, its settings, and a page to read.

    Example: penstock init shop
    """
    for path in tools_of(ctx).services.create_project(folder):
        typer.echo(f"wrote {path}")
    where = shlex.quote(str(folder))
    typer.echo(f"\nNext: penstock validate {where}, then penstock run {where}")


def validate(
    ctx: typer.Context,
    pipeline: Annotated[Path | None, PIPELINE] = None,
    project: Project = HERE,
    profile: Profile = None,
    output: Output = OutputKind.TABLE,
) -> None:
    """Check a pipeline without running it.

    Names, wiring and limits first, then every job's columns, on frames without records.

    Example: penstock validate examples/wordcount
    """
    checks = tools_of(ctx).services.validate(pipeline or project, profile)
    _show_checks(checks, output, "place")
    if any(check.level == "problem" for check in checks):
        raise typer.Exit(SpecError.exit_code)


def reset(
    ctx: typer.Context,
    job: Annotated[str, typer.Argument(help="The job's name.")],
    origin: Annotated[
        BeginAt, typer.Option("--from", help="Begin at the first record that is kept, or after the last.")
    ] = BeginAt.EARLIEST,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    project: Project = HERE,
    profile: Profile = None,
) -> None:
    """Start a job anew: forget its state and how far it has read. What it wrote stays.

    Example: penstock reset count --from latest
    """
    with tools_of(ctx).services.resetting(project, profile, job) as found:
        for line in _reset_lines(found.remembers(), origin):
            typer.echo(line)
        if not yes and not typer.confirm(f"Start {job} anew?"):
            raise MissingError("Nothing was forgotten.")
        found.carry_out(origin.value)
    typer.echo(f"{job} starts anew with the next run.")


def _reset_lines(memory: JobMemory, origin: BeginAt) -> list[str]:
    """What is lost, where it begins again, and what stays."""
    state = f"its state ({format_bytes(memory.state_bytes)})" if memory.state_bytes else "no state"
    read = [f"{held.read:,} of {held.kept:,} records of {held.topic} read" for held in memory.inputs]
    begins = {
        BeginAt.EARLIEST: "the first record that is kept of {0.topic} ({0.kept:,} to read)",
        BeginAt.LATEST: "what comes to {0.topic} from now on",
    }
    again = [begins[origin].format(held) for held in memory.inputs]
    lines = [f"forgotten: {'; '.join([state, *read])}"]
    lines += [f"begins again at: {'; '.join(again)}"] if again else []
    if memory.outputs:
        lines.append(
            f"stays: what it wrote to {', '.join(memory.outputs)}; what it reads again is written again"
        )
    return lines


def doctor(
    ctx: typer.Context, project: Project = HERE, profile: Profile = None, output: Output = OutputKind.TABLE
) -> None:
    """Look at this machine, and say what to mend.

    Java, memory, disk, versions, and Kafka where it is used.

    Example: penstock doctor
    """
    checks = tools_of(ctx).services.doctor(project, profile)
    _show_checks(checks, output, "")
    if any(check.level == "problem" for check in checks):
        raise typer.Exit(EnvironmentProblem.exit_code)


def kafka_jars(
    ctx: typer.Context, folder: Annotated[Path, typer.Argument(help="Where to put them.")] = Path("jars")
) -> None:
    """Fetch the jars that Spark needs for Kafka.

    Example: penstock kafka-jars jars
    """
    jars = tools_of(ctx).services.kafka_jars(folder, tell)
    for jar in jars:
        typer.echo(str(jar))
    typer.echo(f'\nNow set in penstock.toml, under [spark]: jars = ["{folder}/*.jar"]')


def _show_checks(checks: list[Check], output: OutputKind, place: str) -> None:
    if output is OutputKind.JSON:
        show([_as_row(check) for check in checks], output)
        return
    rows = [
        {
            "result": _MARKS[check.level],
            "what": check.name,
            "found": check.text,
            "do": check.remedy,
            "place": check.place,
        }
        for check in checks
    ]
    columns = ["result", "what", "found"]
    columns += ["do"] if any(check.remedy for check in checks) else []
    columns += [place] if place and any(check.place for check in checks) else []
    show(rows, output, columns, "No problem found.")


def _as_row(check: Check) -> dict[str, object]:
    return {
        "name": check.name,
        "level": check.level,
        "text": check.text,
        "remedy": check.remedy,
        "place": check.place,
        "facts": dict(check.facts),
    }
