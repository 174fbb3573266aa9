"""`penstock load TOPIC`: records at a planned rate, for trials."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from penstock.control.load import Load, RecordMaker, Schedule, Shape, plan_constant, read_schedule
from penstock.interfaces.cli.declared import declared_topic
from penstock.interfaces.cli.tools import HERE, Project, Tools, tell, tools_of
from penstock.interfaces.cli.watch import Interrupts
from penstock.model.errors import MissingError, SpecError
from penstock.model.topics import TopicSpec
from penstock.model.units import format_rate, format_seconds, parse_rate_per_second, parse_seconds

_TELL_SECONDS = 10.0


def load(  # noqa: PLR0913 - one parameter per option
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic's name.")],
    rate: Annotated[str | None, typer.Option(help="Records per unit of time, like 100/s or 6k/m.")] = None,
    profile: Annotated[Path | None, typer.Option(help="A CSV of seconds,rate instead of one rate.")] = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="Go from rate to rate in lines, not steps.")
    ] = False,
    for_: Annotated[
        str | None, typer.Option("--for", help="End after this time, like 2m; else Ctrl-C ends it.")
    ] = None,
    template: Annotated[
        str | None, typer.Option(help="A value with places, like '{\"n\": {int:1:9}}'.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option(help="A file whose lines are the values, over and over.")
    ] = None,
    words: Annotated[int | None, typer.Option(help="Sentences of so many words.", min=1)] = None,
    seed: Annotated[int, typer.Option(help="The same seed makes the same records.", min=0)] = 1,
    pipeline: Annotated[Path | None, typer.Option(help="The pipeline that declares the topic.")] = None,
    project: Project = HERE,
    settings_profile: Annotated[str | None, typer.Option(help="Profile of penstock.toml to use.")] = None,
) -> None:
    """Append records at a planned rate. Without --template, --file or --words they fit the topic's declared columns.

    Places of a template: {int:1:9} {float:0:1} {word} {word:a,b} {words:5} {seq} {now} {now_ms}.

    Example: penstock load sentences --rate 100/s --for 1m
    """
    tools = tools_of(ctx)
    schedule = _schedule(rate, profile, "linear" if linear else "step", for_)
    spec = declared_topic(tools.services, project, pipeline, topic)
    maker = _maker(topic, spec, (template, file, words), seed)
    topics = tools.services.topics(project, settings_profile)
    try:
        if topic not in topics.topics():
            if spec is None:
                topics.describe(topic)  # says which topics there are
            else:
                topics.create(topic, spec.partitions)
        with Interrupts() as interrupts:
            _feed(tools, Load(topics, topic, schedule, maker, tools.clock.now()), interrupts)
    finally:
        topics.close()


def _schedule(rate: str | None, profile: Path | None, shape: Shape, for_: str | None) -> Schedule:
    for_seconds = math.inf if for_ is None else parse_seconds("--for", for_)
    if (rate is None) == (profile is None):
        raise SpecError(
            "--rate",
            rate,
            "needs to stand alone, or --profile does",
            "give one of the two, like --rate 100/s",
        )
    if profile is None:
        return plan_constant(parse_rate_per_second("--rate", rate), for_seconds)
    return read_schedule(_read(profile), shape, str(profile), for_seconds)


def _maker(
    topic: str, spec: TopicSpec | None, given: tuple[str | None, Path | None, int | None], seed: int
) -> RecordMaker:
    # numpy comes with it: only this command waits for that.
    from penstock.control.load_records import Lines, Template, make_by_columns, make_sentences, make_texts

    template, file, words = given
    if sum(each is not None for each in given) > 1:
        raise SpecError("--template", template, "cannot stand beside --file or --words", "give one of them")
    if template is not None:
        return make_texts(Template(template, seed), spec)
    if file is not None:
        return make_texts(Lines(_read(file).splitlines(), str(file)), spec)
    if words is not None:
        return make_sentences(seed, words, spec)
    if spec is None:
        raise SpecError(
            "topic",
            topic,
            "is declared by no pipeline here",
            "name one with --pipeline, or give --template, --file or --words",
        )
    return make_by_columns(seed, spec)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingError(f"The file {path} cannot be read ({error.strerror}); name another.") from None
    except UnicodeDecodeError:
        raise SpecError("file", str(path), "is not UTF-8 text", "save it as UTF-8") from None


def _feed(tools: Tools, load: Load, interrupts: Interrupts) -> None:
    began = told = tools.clock.now()
    while not interrupts.count:
        now = tools.clock.now()
        wake = load.step(now)
        if wake is None:
            break
        if now - told >= _TELL_SECONDS:
            told = now
            tell(f"{load.sent:,} records, now {format_rate(load.rate_now(now))}")
        if wake > now:
            interrupts.wait(min(wake - now, 1.0))
    passed = tools.clock.now() - began
    late = (
        f"; {format_seconds(load.behind_most_seconds)} late at most" if load.behind_most_seconds > 1 else ""
    )
    typer.echo(f"appended {load.sent:,} records in {format_seconds(passed)}{late}")
