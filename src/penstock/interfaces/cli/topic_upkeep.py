"""`penstock topic verify` and `retain`: what the embedded log does by itself, done now and told. Kafka has its brokers."""

from __future__ import annotations

from typing import Annotated, cast

import typer

from penstock.interfaces.cli.output import show
from penstock.interfaces.cli.tools import HERE, Output, OutputKind, Profile, Project
from penstock.interfaces.cli.topic import Name, confirm_loss, open_topics
from penstock.model.errors import CorruptionError, MissingError, SpecError
from penstock.ports.topics import KeptTopics, Topics


def verify(
    ctx: typer.Context,
    name: Annotated[str | None, typer.Argument(help="One topic; all when none is given.")] = None,
    project: Project = HERE,
    profile: Profile = None,
    output: Output = OutputKind.TABLE,
) -> None:
    """Say what is torn, corrupt or missing.

    Every segment is read again. Changes nothing; ends with 5 when something is found.

    Example: penstock topic verify words
    """
    with open_topics(ctx, project, profile) as topics:
        found = [
            {"kind": each.kind, "file": each.path or "-", "found": each.sentence}
            for each in _kept(topics).verify(name)
        ]
    show(found, output, empty="All that the index promises is there.")
    if found:
        raise typer.Exit(CorruptionError.exit_code)


def retain(
    ctx: typer.Context,
    name: Name,
    past_readers: Annotated[
        bool, typer.Option("--past-readers", help="Also drop what readers have not read yet.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Don't ask.")] = False,
    project: Project = HERE,
    profile: Profile = None,
) -> None:
    """Drop now what a topic need not keep.

    That is what its retention.ms and retention.bytes say; what a reader still has to read is kept, unless it is told otherwise.

    Example: penstock topic retain words --past-readers --yes
    """
    with open_topics(ctx, project, profile) as topics:
        kept = _kept(topics)
        kept.describe(name)  # says which topics there are
        if past_readers and not yes:
            confirm_loss(f"Drop records of {name} that readers have not read?", "dropped")
        dropped = kept.retain(name, force=past_readers)
    typer.echo(f"dropped {dropped:,} records of {name}")


def _kept(topics: Topics) -> KeptTopics:
    if topics.kind == "kafka":
        raise SpecError(
            "bus.kind", "kafka", "has brokers that look after its topics", "use Kafka's own tools for that"
        )
    if topics.kind != "log":
        raise MissingError("There is no log yet; a run makes one, or `penstock topic create`.")
    return cast("KeptTopics", topics)
