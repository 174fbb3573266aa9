"""`penstock load TOPIC`: records at a planned rate, for trials."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Annotated

import typer

from penstock.authoring.fields import UNCHECKED, check_fields
from penstock.control.load import Load, RecordMaker, Schedule, Shape, plan_constant, read_schedule
from penstock.interfaces.cli.declared import declared_topic
from penstock.interfaces.cli.tools import HERE, Profile, Project, Tools, tell, tools_of
from penstock.interfaces.cli.watch import Interrupts
from penstock.model.errors import MissingError, SpecError
from penstock.model.topics import TopicSpec
from penstock.model.units import format_rate, format_seconds, parse_rate_per_second, parse_seconds

_TELL_SECONDS = 10.0


def load(  # noqa: PLR0913 - one parameter per option
    ctx: typer.Context,
    topic: Annotated[str, typer.Argument(help="The topic's name.")],
    rate: Annotated[str | None, typer.Option(help="Records per unit of time, like 100/s or 6k/m.")] = None,
    rates: Annotated[Path | None, typer.Option(help="A CSV of seconds,rate instead of one rate.")] = None,
    linear: Annotated[
        bool, typer.Option("--linear", help="With --rates: go from rate to rate in lines, not steps.")
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
    unchecked: Annotated[
        bool, typer.Option(UNCHECKED, help="Also send fields that are no columns of the topic.")
    ] = False,
    pipeline: Annotated[Path | None, typer.Option(help="The pipeline that declares the topic.")] = None,
    project: Project = HERE,
    profile: Profile = None,
) -> None:
    """Append records to a topic at a planned rate.

    Without --template, --file or --words they fit the topic's declared columns.
    Places of a template: {int:1:9} {float:0:1} {word} {word:a,b} {words:5} {seq} {now} {now_ms}.

    Example: penstock load sentences --rate 100/s --for 1m
    """
    tools = tools_of(ctx)
    schedule = _schedule(topic, (rate, rates), linear, for_)
    spec = declared_topic(tools.services, project, pipeline, topic)
    maker = _maker(topic, spec, (template, file, words), seed, check=not unchecked)
    topics = tools.services.topics(project, profile, make=spec is not None)
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


def _schedule(topic: str, given: tuple[str | None, Path | None], linear: bool, for_: str | None) -> Schedule:
    rate, rates = given
    for_seconds = math.inf if for_ is None else parse_seconds("--for", for_)
    if for_seconds == 0:
        raise SpecError("--for", for_, "leaves no time", "give a duration above 0, like 30s")
    if rate is not None and rates is not None:
        raise SpecError("--rates", str(rates), f"stands beside --rate {rate}", "keep one of the two")
    if rates is not None:
        shape: Shape = "linear" if linear else "step"
        return read_schedule(_read("--rates", rates), shape, str(rates), for_seconds)
    if rate is None:
        raise SpecError(
            "topic", topic, "is given no rate", "add one, like --rate 100/s, or a CSV of them with --rates"
        )
    if linear:
        raise SpecError("--linear", True, "has no rates to go between", "give --rates, or leave it out")
    per_second = parse_rate_per_second("--rate", rate)
    if per_second == 0:
        raise SpecError("--rate", rate, "brings no record", "give a rate above 0, like 100/s")
    return plan_constant(per_second, for_seconds)


def _maker(
    topic: str,
    spec: TopicSpec | None,
    given: tuple[str | None, Path | None, int | None],
    seed: int,
    *,
    check: bool,
) -> RecordMaker:
    # numpy comes with it: only this command waits for that.
    from penstock.control.load_records import Lines, Template, make_by_columns, make_sentences, make_texts

    template, file, words = given
    options = {"--template": template, "--file": file, "--words": words}
    chosen = [(name, value) for name, value in options.items() if value is not None]
    if len(chosen) > 1:
        (first, _), (second, value) = chosen[:2]
        raise SpecError(second, str(value), f"stands beside {first}", "keep one of them")
    if template is not None:
        if spec is not None and check:
            check_fields(Template(template, seed)(1)[0], spec, "--template")
        return make_texts(Template(template, seed), spec)
    if file is not None:
        lines = _read("--file", file).splitlines()
        if spec is not None and check:
            for number, line in enumerate(lines, start=1):
                check_fields(line, spec, f"{file}:{number}")
        return make_texts(Lines(lines, str(file)), spec)
    if words is not None:
        return make_sentences(seed, words, spec)
    if spec is None:
        raise SpecError(
            "topic",
            topic,
            "is declared by no pipeline here, so that its columns are not known",
            "mend the name, name the pipeline with --pipeline or --project, or give --template, --file or --words",
        )
    return make_by_columns(seed, spec)


def _read(option: str, path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise MissingError(
            f"The file {path} of {option} cannot be read ({error.strerror}); name another."
        ) from None
    except UnicodeDecodeError:
        raise SpecError(option, str(path), "is not UTF-8 text", "save it as UTF-8") from None


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
