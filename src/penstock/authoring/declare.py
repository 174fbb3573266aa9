"""The words of a pipeline file: `topic`, `job`, `source`, `sink`, `with_metadata`.

Each returns a frozen value and says in one sentence, at the owner's line, what it cannot use. A decorated
function stays the plain function it was, so that it can be called in a test.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast, overload

from penstock.authoring.options import build_job_options, read_job_options
from penstock.authoring.reading import build, nearest
from penstock.authoring.registry import JobEntry, JobFunction, caller_place, declare_job, declare_topic
from penstock.authoring.schema import parse_columns
from penstock.model.errors import SpecError
from penstock.model.ids import check_name
from penstock.model.jobs import Input, JobSpec, Output, SinkSpec, SourceSpec
from penstock.model.topics import Codec, TopicSpec
from penstock.model.units import parse_bytes, parse_seconds

_Function = TypeVar("_Function", bound=JobFunction)
_WATERMARK = "10s"
FOREACH_BATCH = "foreachBatch"
"""The format of a sink that is a function of the owner's."""


@dataclass(frozen=True, slots=True)
class Topic:
    """A declared topic."""

    spec: TopicSpec

    @property
    def name(self) -> str:
        return self.spec.name


@dataclass(frozen=True, slots=True)
class WithMetadata:
    """A topic read with the columns _key, _partition, _offset, _timestamp and _headers added."""

    topic: Topic | str


@dataclass(frozen=True, slots=True)
class Source:
    """A Spark source that is no topic."""

    spec: SourceSpec


@dataclass(frozen=True, slots=True)
class Sink:
    """A Spark sink that is no topic; `function` is its foreachBatch."""

    spec: SinkSpec
    function: JobFunction | None = None


@dataclass(frozen=True, slots=True)
class DeclaredJob:
    """A job that is SQL text alone."""

    spec: JobSpec


Readable = Topic | WithMetadata | Source | str
Reads = Readable | Sequence[Readable] | Mapping[str, Readable]
Writable = Topic | Sink | str
Writes = Writable | Sequence[Writable]


def topic(  # noqa: PLR0913 - one keyword per field of a topic, as its owner writes them
    name: str,
    schema: str,
    *,
    key: str | None = None,
    codec: Codec = "json",
    partitions: int = 8,
    event_time: str | None = None,
    watermark: str | float = _WATERMARK,
    retention: str | float | None = None,
    retention_bytes: str | int | None = None,
    on_bad_record: str = "dead_letter",
    **unknown: object,
) -> Topic:
    """Declare a topic. `schema` is its columns, `watermark` and `retention` are durations ("10s", "7d") or
    seconds.
    """
    place = caller_place()
    for keyword, value in unknown.items():
        known = [each for each in inspect.signature(topic).parameters if each != "unknown"]
        raise SpecError(keyword, value, f"is no option of topic {name!r}", nearest(keyword, known), place)
    fields: dict[str, object] = {
        "name": name,
        "columns": schema,
        "key": key,
        "codec": codec,
        "partitions": partitions,
        "event_time": event_time,
        "on_bad_record": on_bad_record,
        "place": place,
    }
    try:
        parse_columns("schema", str(schema))
        if event_time is not None:
            fields["watermark_seconds"] = parse_seconds("watermark", watermark)
        elif watermark != _WATERMARK:
            raise SpecError(
                "watermark", watermark, "has no column to look at", "name the timestamp column in event_time"
            )
        if retention is not None:
            fields["retention_seconds"] = parse_seconds("retention", retention)
        if retention_bytes is not None:
            fields["retention_bytes"] = parse_bytes("retention_bytes", retention_bytes)
    except SpecError as error:
        raise error.at(place) from None
    spec = build(TopicSpec, fields, {"schema": "columns"}, place)
    declare_topic(spec)
    return Topic(spec)


def with_metadata(read: Topic | str) -> WithMetadata:
    """Read a topic with each record's _key, _partition, _offset, _timestamp and _headers as columns."""
    return WithMetadata(read)


def source(
    format: str,
    schema: str | None = None,
    *,
    static: bool = False,
    options: Mapping[str, object] | None = None,
    **more: object,
) -> Source:
    """A Spark source by format and options; `static=True` reads it as a table (the other side of a join)."""
    place = caller_place()
    fields: dict[str, object] = {
        "format": format,
        "options": _spark_options(options, more),
        "columns": schema,
        "static": static,
    }
    if schema is not None:
        try:
            parse_columns("schema", str(schema))
        except SpecError as error:
            raise error.at(place) from None
    return Source(build(SourceSpec, fields, {"schema": "columns"}, place))


def sink(
    format: str | None = None,
    *,
    foreach_batch: JobFunction | None = None,
    options: Mapping[str, object] | None = None,
    **more: object,
) -> Sink:
    """A Spark sink by format and options, or `foreach_batch=fn` with fn(frame, batch_id)."""
    place = caller_place()
    if (format is None) == (foreach_batch is None):
        raise SpecError(
            "sink", format, "needs either a format or foreach_batch", 'write sink("parquet", path=...)', place
        )
    if foreach_batch is not None and not callable(foreach_batch):
        raise SpecError(
            "foreach_batch", foreach_batch, "is not a function", "give a function of (frame, batch_id)", place
        )
    fields: dict[str, object] = {
        "format": format or FOREACH_BATCH,
        "options": _spark_options(options, more),
        "function": foreach_batch is not None,
    }
    return Sink(build(SinkSpec, fields, place=place), foreach_batch)


@overload
def job(*, reads: Reads, writes: Writes, sql: str, name: str, **options: Any) -> DeclaredJob: ...
@overload
def job(
    *, reads: Reads, writes: Writes, sql: str, name: None = None, **options: Any
) -> Callable[[_Function], _Function]: ...
@overload
def job(
    *, reads: Reads, writes: Writes, sql: None = None, name: str | None = None, **options: Any
) -> Callable[[_Function], _Function]: ...
def job(
    function: object = None,
    /,
    *,
    reads: Reads | None = None,
    writes: Writes | None = None,
    sql: str | None = None,
    name: str | None = None,
    **options: Any,
) -> DeclaredJob | Callable[[_Function], _Function]:
    """Declare a job: a decorator of its function, or, with `sql` and `name`, a job of SQL text alone.

    `reads` gives the function's arguments in order, or by name as a dict; SQL sees each as a view of that
    name, else of the topic's. A job that writes several returns a dict of frames by the topic's name.
    Options: see `JobOptions`.
    """
    place = caller_place()
    if function is not None and reads is not None and writes is not None:
        raise SpecError(
            "job", name, "is given its function in front", "put @job(...) above the function", place
        )
    if reads is None or writes is None:
        shown = name or getattr(function, "__name__", None) or "job"
        missing = " and ".join(n for n, given in (("reads", reads), ("writes", writes)) if given is None)
        raise SpecError(
            "job", shown, f"does not say what it {missing}", "write @job(reads=TOPIC, writes=TOPIC)", place
        )
    draft = _Draft(place, reads, writes, sql, read_job_options(options, place))
    if sql is not None and name is not None:
        spec, _ = draft.declare(name, None)
        return DeclaredJob(spec)

    def declare(function: _Function) -> _Function:
        draft.declare(name or getattr(function, "__name__", ""), function)
        return function

    return declare


class _Draft:
    """A job's declaration until its name and function are known."""

    def __init__(
        self, place: str, reads: Reads, writes: Writes, sql: str | None, options: Mapping[str, object]
    ) -> None:
        self.place, self.sql = place, sql
        self.options = build_job_options(options, place)
        self.names = tuple(reads) if isinstance(reads, Mapping) else None
        readables = _several(reads.values() if isinstance(reads, Mapping) else reads)
        writables = _several(writes)
        self.inputs = tuple(
            self._input(readable, self.names[i] if self.names else "") for i, readable in enumerate(readables)
        )
        self.outputs = tuple(self._output(writable) for writable in writables)
        self.topics = tuple(
            found.spec for item in (*readables, *writables) if (found := _topic_of(item)) is not None
        )
        functions = [w.function for w in writables if isinstance(w, Sink) and w.function is not None]
        if not self.inputs:
            raise SpecError("reads", reads, "names no input", "give a topic or a source", place)
        if not self.outputs:
            raise SpecError("writes", writes, "names no output", "give a topic or a sink", place)
        if len(functions) > 1:
            raise SpecError(
                "writes", writes, "has several foreach_batch functions", "call both from one", place
            )
        self.foreach = functions[0] if functions else None

    def declare(self, name: str, function: JobFunction | None) -> tuple[JobSpec, JobFunction | None]:
        try:
            check_name("job", name)
        except SpecError as error:
            raise error.at(self.place) from None
        call = None if self.sql is not None or function is None else self._call(name, function)
        spec = JobSpec(
            name=name,
            inputs=self.inputs,
            outputs=self.outputs,
            options=self.options,
            sql=self.sql,
            place=self.place,
        )
        declare_job(JobEntry(spec, call, self.foreach, self.topics))
        return spec, call

    def _call(self, name: str, function: JobFunction) -> JobFunction:
        """The function as the runner calls it: frames in the order of the inputs."""
        wanted = ", ".join(self.names or [i.label for i in self.inputs])
        try:
            if self.names is None:
                inspect.signature(function).bind(*self.inputs)
            else:
                inspect.signature(function).bind(**dict.fromkeys(self.names))
        except TypeError as error:
            raise SpecError(
                "job",
                name,
                f"cannot be called with what it reads ({error})",
                f"let its function take {len(self.inputs)}: {wanted}",
                self.place,
            ) from None
        names = self.names
        if names is None:
            return function
        return lambda *frames: function(**dict(zip(names, frames, strict=True)))

    def _input(self, item: object, name: str) -> Input:
        metadata = isinstance(item, WithMetadata)
        if isinstance(item, WithMetadata):
            item = item.topic
        if isinstance(item, Topic | str):
            topic_name = item.name if isinstance(item, Topic) else item
            return Input(topic=topic_name, metadata=metadata, view=name or _view(topic_name))
        if isinstance(item, Source):
            return Input(source=item.spec, view=name or _view(item.spec.format))
        raise SpecError(
            "reads", item, "is neither a topic nor a source", "use topic(...) or source(...)", self.place
        )

    def _output(self, item: object) -> Output:
        if isinstance(item, Topic | str):
            return Output(topic=item.name if isinstance(item, Topic) else item)
        if isinstance(item, Sink):
            return Output(sink=item.spec)
        raise SpecError(
            "writes", item, "is neither a topic nor a sink", "use topic(...) or sink(...)", self.place
        )


def _several(value: object) -> tuple[object, ...]:
    """One thing, or several of them, as a tuple."""
    if isinstance(value, str) or not hasattr(value, "__iter__"):
        return (value,)
    return tuple(cast("Sequence[object]", value))


def _topic_of(item: object) -> Topic | None:
    if isinstance(item, WithMetadata):
        item = item.topic
    return item if isinstance(item, Topic) else None


def _view(name: str) -> str:
    """A name that SQL can use without quotes."""
    return re.sub(r"\W", "_", name)


def _spark_options(options: Mapping[str, object] | None, more: Mapping[str, object]) -> dict[str, str]:
    """Options as Spark takes them: text, with `true` and `false` in small letters."""
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in {**(options or {}), **more}.items()
    }
