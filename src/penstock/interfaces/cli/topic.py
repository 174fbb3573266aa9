"""`penstock topic ...`: make, look at, read and write topics, on the embedded log and on Kafka alike."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from penstock.authoring.fields import UNCHECKED, check_fields
from penstock.authoring.reading import nearest
from penstock.interfaces.cli.declared import declared_topic
from penstock.interfaces.cli.errors import SentenceGroup
from penstock.interfaces.cli.output import show, show_json
from penstock.interfaces.cli.tools import HERE, Output, OutputKind, Profile, Project, parse_pairs, tools_of
from penstock.model.errors import MissingError, SpecError
from penstock.model.ids import TopicPartition
from penstock.model.records import Record, StoredRecord
from penstock.model.topics import TopicSpec
from penstock.model.units import format_bytes, format_seconds, parse_seconds
from penstock.ports.topics import LOG_CONFIG, Topics

app = typer.Typer(
    cls=SentenceGroup,
    help="Make, look at, read and write topics.",
    no_args_is_help=True,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_DEFAULT_PARTITIONS = 8
_READ_AT_ONCE = 1_000
_APPEND_AT_ONCE = 5_000
_FOLLOW_SECONDS = 0.3
Name = Annotated[str, typer.Argument(help="The topic's name.")]


@contextmanager
def open_topics(
    ctx: typer.Context, project: Path, profile: str | None, *, make: bool = False
) -> Generator[Topics]:
    """A project's topics, for one command."""
    topics = tools_of(ctx).services.topics(project, profile, make=make)
    try:
        yield topics
    finally:
        topics.close()


@app.command()
def create(
    ctx: typer.Context,
    name: Name,
    partitions: Annotated[int | None, typer.Option(help="The pipeline's declaration, else 8.", min=1)] = None,
    config: Annotated[
        list[str] | None, typer.Option(help="A setting by Kafka's name, like retention.ms=60000.")
    ] = None,
    project: Project = HERE,
    profile: Profile = None,
) -> None:
    """Make a topic.

    Example: penstock topic create words --partitions 16 --config retention.ms=3600000
    """
    given = parse_pairs("--config", config or [], "retention.ms=60000")
    spec = declared_topic(tools_of(ctx).services, project, None, name) if partitions is None else None
    count = partitions or (spec.partitions if spec else _DEFAULT_PARTITIONS)
    with open_topics(ctx, project, profile, make=True) as topics:
        if topics.kind == "log":
            _check_config(given)
        made = topics.create(name, count, given or None)
    typer.echo(f"{'made' if made else 'already there:'} {name} with {count} partitions")


def _check_config(given: Mapping[str, str]) -> None:
    """What the embedded log would keep and never act on is refused; Kafka judges by itself."""
    for name, value in given.items():
        if name not in LOG_CONFIG:
            raise SpecError(
                f"--config {name}", value, "is no setting of the embedded log", nearest(name, LOG_CONFIG)
            )


@app.command("list")
def list_topics(
    ctx: typer.Context, project: Project = HERE, profile: Profile = None, output: Output = OutputKind.TABLE
) -> None:
    """List topics.

    Example: penstock topic list -o json
    """
    with open_topics(ctx, project, profile) as topics:
        infos = [topics.describe(name) for name in topics.topics()]
    rows = [
        {
            "topic": info.name,
            "partitions": len(info.partitions),
            "records": info.records,
            "bytes": sum(p.size_bytes for p in info.partitions),
        }
        for info in infos
    ]
    if output is OutputKind.TABLE:
        rows = [{**row, "bytes": format_bytes(int(row["bytes"]))} for row in rows]
    show(rows, output, empty="No topic yet; `penstock topic create NAME` makes one, and so does a run.")


@app.command()
def describe(
    ctx: typer.Context,
    name: Name,
    project: Project = HERE,
    profile: Profile = None,
    output: Output = OutputKind.TABLE,
) -> None:
    """Show a topic's partitions, offsets and settings.

    Example: penstock topic describe words
    """
    with open_topics(ctx, project, profile) as topics:
        info = topics.describe(name)
    rows = [
        {
            "partition": p.place.partition,
            "begin": p.begin,
            "end": p.end,
            "records": p.end - p.begin,
            "bytes": p.size_bytes,
        }
        for p in info.partitions
    ]
    if output is OutputKind.JSON:
        show_json({"topic": info.name, "config": dict(info.config), "partitions": rows})
        return
    settings = ", ".join(f"{key}={value}" for key, value in info.config.items()) or "none"
    typer.echo(f"{info.name}: {info.records:,} records in {len(rows)} partitions; settings: {settings}\n")
    show(rows, output)


@app.command()
def tail(  # noqa: PLR0913 - one parameter per option
    ctx: typer.Context,
    name: Name,
    lines: Annotated[
        int, typer.Option("-n", "--lines", help="The newest so many of each partition.", min=0)
    ] = 10,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with what comes, until Ctrl-C.")
    ] = False,
    all_: Annotated[bool, typer.Option("--all", help="From the beginning.")] = False,
    since: Annotated[
        str | None, typer.Option("--since", help='As young as this or younger, like "10m".')
    ] = None,
    project: Project = HERE,
    profile: Profile = None,
    output: Output = OutputKind.TABLE,
) -> None:
    """Print a topic's newest records, or all.

    A line is partition@offset, key, value, and the headers where there are any: a dead letter's say why it is one.

    Example: penstock topic tail counts -n 3 -f
    """
    with open_topics(ctx, project, profile) as topics:
        begins, ends = topics.begin_offsets([name]), topics.end_offsets([name])
        if not ends:
            topics.describe(name)  # says which topics there are
        at = {
            place: begins[place] if all_ else max(begins[place], end - lines) for place, end in ends.items()
        }
        if since is not None:
            young = tools_of(ctx).clock.now() - parse_seconds("--since", since)
            at = topics.offsets_at(name, round(young * 1000))
        while True:
            for record in _read(topics, at, ends):
                _print_record(record, output)
            if not follow:
                return
            tools_of(ctx).pause(_FOLLOW_SECONDS)
            ends = topics.end_offsets([name])


def _read(
    topics: Topics, at: dict[TopicPartition, int], ends: dict[TopicPartition, int]
) -> Iterator[StoredRecord]:
    """Records from `at` to `ends`, partition by partition; moves `at` on."""
    for place in sorted(ends):
        while at.get(place, 0) < ends[place]:
            records = topics.read(place, at.get(place, 0), min(_READ_AT_ONCE, ends[place] - at.get(place, 0)))
            if not records:
                at[place] = ends[place]
                break
            yield from records
            at[place] = records[-1].offset + 1


def _print_record(stored: StoredRecord, output: OutputKind) -> None:
    record = stored.record
    key, value = _text(record.key), _text(record.value)
    if output is OutputKind.TABLE:
        cells = [f"{stored.place.partition}@{stored.offset}", key, value]
        if record.headers:
            cells.append("; ".join(f"{name}: {_text(held)}" for name, held in record.headers))
        typer.echo("\t".join("-" if cell is None else cell for cell in cells))
        return
    import json

    row = {
        "partition": stored.place.partition,
        "offset": stored.offset,
        "timestamp_ms": record.timestamp_ms,
        "key": key,
        "value": value,
        "headers": {name: _text(held) for name, held in record.headers},
    }
    typer.echo(json.dumps(row, ensure_ascii=False))


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode(errors="replace")


@app.command()
def produce(  # noqa: PLR0913 - one parameter per option
    ctx: typer.Context,
    name: Name,
    values: Annotated[
        list[str] | None, typer.Argument(help="Values; without any, one a line from stdin.")
    ] = None,
    key: Annotated[str | None, typer.Option(help="The key of all of them.")] = None,
    keyed: Annotated[bool, typer.Option("--keyed", help="Each is key, a tab, value.")] = False,
    unchecked: Annotated[
        bool, typer.Option(UNCHECKED, help="Also send fields that are no columns of the topic.")
    ] = False,
    project: Project = HERE,
    profile: Profile = None,
) -> None:
    """Append records to a topic that is there.

    Example: penstock topic produce sentences '{"line": "to be or not to be"}'
    """
    if key is not None and keyed:
        raise SpecError("--keyed", True, "cannot stand beside --key", "give one of the two")
    now_ms = int(tools_of(ctx).clock.now() * 1000)
    lines = iter(values) if values else (line.rstrip("\n") for line in sys.stdin)
    spec = None if unchecked else declared_topic(tools_of(ctx).services, project, None, name)
    records = (
        _record(number, line, (key, keyed), now_ms, spec) for number, line in enumerate(lines, start=1)
    )
    sent = 0
    with open_topics(ctx, project, profile) as topics:
        topics.describe(name)
        while part := list(islice(records, _APPEND_AT_ONCE)):
            topics.append(name, part)
            sent += len(part)
    if not sent:
        raise MissingError(
            "Nothing was appended: no value was given and stdin was empty; give values, or one a line on stdin."
        )
    typer.echo(f"appended {sent:,} {'record' if sent == 1 else 'records'} to {name}", err=True)


def _record(
    number: int, line: str, keys: tuple[str | None, bool], now_ms: int, spec: TopicSpec | None
) -> Record:
    (key, keyed), value = keys, line
    if keyed:
        key, separator, value = line.partition("\t")
        if not separator:
            raise SpecError(
                "record",
                line[:80],
                "has no tab between key and value",
                "put a tab between them, or leave --keyed out",
                f"line {number}",
            )
    if spec is not None:
        check_fields(value, spec, f"line {number}")
    return Record(None if key is None else key.encode(), value.encode(), now_ms)


@app.command()
def lag(
    ctx: typer.Context,
    name: Annotated[
        str | None, typer.Argument(help="The topic's name; all topics when none is given.")
    ] = None,
    each: Annotated[bool, typer.Option("--partitions", help="A line for each partition.")] = False,
    project: Project = HERE,
    profile: Profile = None,
    output: Output = OutputKind.TABLE,
) -> None:
    """Show how far each reader is behind.

    LAG is in records: those that it has not committed yet.

    Example: penstock topic lag words --partitions
    """
    now = tools_of(ctx).clock.now()
    with open_topics(ctx, project, profile) as topics:
        if name is not None:
            topics.describe(name)  # says which topics there are
        names = [name] if name is not None else topics.topics()
        rows = [row for topic in names for row in _lag_rows(topics, topic, each, now)]
    if output is OutputKind.TABLE:
        rows = [{**row, "heard": _age(row["heard_seconds_ago"])} for row in rows]
    columns = ["reader", "topic", *(["partition"] if each else []), "offset", "end", "lag", "heard"]
    show(rows, output, columns, "No reader has said how far it is.")


def _lag_rows(topics: Topics, topic: str, each: bool, now: float) -> list[dict[str, object]]:
    ends = topics.end_offsets([topic])
    rows: dict[object, dict[str, object]] = {}
    for held in topics.readers(topic):
        key = (held.reader, held.place.partition if each else None)
        end = ends.get(held.place, held.offset)
        row = rows.setdefault(
            key,
            {
                "reader": held.reader,
                "topic": topic,
                "offset": 0,
                "end": 0,
                "lag": 0,
                "heard_seconds_ago": None,
            },
        )
        if each:
            row["partition"] = held.place.partition
        for field, value in (("offset", held.offset), ("end", end), ("lag", max(0, end - held.offset))):
            row[field] = int(str(row[field])) + value
        ago = None if held.at is None else now - held.at
        known = row["heard_seconds_ago"]
        row["heard_seconds_ago"] = (
            ago if not isinstance(known, float) or (ago is not None and ago < known) else known
        )
    return list(rows.values())


def _age(seconds: object) -> str:
    return f"{format_seconds(max(0.0, seconds))} ago" if isinstance(seconds, float) else "-"


@app.command()
def delete(
    ctx: typer.Context,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    project: Project = HERE,
    profile: Profile = None,
) -> None:
    """Delete a topic with all its records.

    How far its readers were is forgotten with it.

    Example: penstock topic delete words --yes
    """
    services = tools_of(ctx).services
    with services.at_rest(project, profile), open_topics(ctx, project, profile) as topics:
        info = topics.describe(name)
        readers = dict.fromkeys(held.reader for held in topics.readers(name))
        if not yes:
            confirm_loss(f"Delete {name} with {info.records:,} records?", "deleted")
        topics.delete(name)
    typer.echo(f"deleted {name}")
    if readers:
        typer.echo(
            f"It was read by {', '.join(readers)}: before a job reads one that is made anew, `penstock reset JOB`."
        )


def confirm_loss(question: str, done: str) -> None:
    """Go on only with a yes; without anybody to give one, a sentence says how to go on."""
    try:
        if typer.confirm(question):
            return
    except typer.Abort:
        typer.echo()  # the question still stands on its line
        raise MissingError(
            f"Nothing was {done}, since nobody answered; add --yes to go on without being asked."
        ) from None
    raise MissingError(f"Nothing was {done}.")
