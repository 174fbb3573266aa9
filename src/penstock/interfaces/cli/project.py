"""Commands about a project as it lies there: make one, check one, check the machine, fetch jars."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from penstock.interfaces.cli.output import show
from penstock.interfaces.cli.tools import HERE, PIPELINE, Output, OutputKind, Profile, Project, tell, tools_of
from penstock.model.errors import EnvironmentProblem, SpecError
from penstock.model.status import Check

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
