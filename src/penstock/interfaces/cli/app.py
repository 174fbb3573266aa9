"""Puts the commands together. It knows their names and order, and nothing of what they do."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from penstock.interfaces.cli import bench, explain, load, probe, project, run, runs, topic, topic_upkeep
from penstock.interfaces.cli.errors import SentenceGroup
from penstock.interfaces.cli.tools import Tools
from penstock.ports.clock import Clock
from penstock.ports.services import Services


def build_app(services: Services, clock: Clock) -> typer.Typer:
    """The whole command line over these services."""
    app = typer.Typer(
        name="penstock",
        cls=SentenceGroup,
        help="Streaming pipelines on Spark that measure themselves and take the right size.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback()
    def root(
        ctx: typer.Context,
        show_version: Annotated[
            bool,
            typer.Option(
                "--version", help="Print the version and end.", is_eager=True, callback=_print_version
            ),
        ] = False,
    ) -> None:
        ctx.obj = Tools(services, clock)

    for command in (project.init, project.validate, run.run, explain.explain, probe.probe):
        app.command()(command)
    app.command()(run.demo)
    for command in (topic_upkeep.verify, topic_upkeep.retain):
        topic.app.command()(command)
    app.add_typer(topic.app, name="topic")
    app.command()(load.load)
    app.command()(runs.runs)
    app.command()(runs.report)
    app.command()(project.reset)
    app.command()(bench.bench)
    app.command()(project.doctor)
    app.command("kafka-jars")(project.kafka_jars)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"penstock {version('penstock')}")
        raise typer.Exit
