"""A job's function applied: its inputs as frames, its result as what the sink takes.

Each job has a session of its own over the one Spark application, so that SQL views and settings of jobs never meet.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's users write it

from penstock.model.errors import PenstockError, SpecError
from penstock.model.jobs import Input, JobSpec, SourceSpec
from penstock.model.topics import TopicSpec
from penstock.spark.codecs import Reject, decode, encode
from penstock.spark.failures import user_line
from penstock.spark.refusals import describe_error, describe_stream_refusal, plain_text
from penstock.spark.session import jvm

JobFunction = Callable[..., Any]
Read = Callable[[int, TopicSpec], DataFrame]
"""The n-th stream of a job, over a topic, as raw records."""
Rejects = Callable[[int, TopicSpec], Reject]


@dataclass(frozen=True)
class JobCode:
    """A job and what runs it: its spec, its topics, the owner's functions."""

    spec: JobSpec
    topics: Mapping[str, TopicSpec]
    function: JobFunction | None
    foreach: JobFunction | None
    folder: str = ""
    """Where the owner's files are: lines from there are shown first in errors."""


def input_frames(session: SparkSession, code: JobCode, read: Read, rejects: Rejects) -> list[DataFrame]:
    """One frame for each input, in the order declared; streams over topics are numbered in that order."""
    frames: list[DataFrame] = []
    stream = 0
    for given in code.spec.inputs:
        if given.topic is None:
            assert given.source is not None
            frames.append(_source(session, code.spec, given.source))
            continue
        topic = code.topics[given.topic]
        frames.append(
            decode(read(stream, topic), topic, metadata=given.metadata, reject=rejects(stream, topic))
        )
        stream += 1
    return frames


def _source(session: SparkSession, job: JobSpec, source: SourceSpec) -> DataFrame:
    reader: Any = session.read if source.static else session.readStream
    reader = reader.format(source.format).options(**dict(source.options))
    if source.columns is not None:
        reader = reader.schema(source.columns)
    try:
        return reader.load()
    except Exception as error:
        raise SpecError(
            f"job {job.name!r} source",
            source.format,
            f"cannot be read ({plain_text(error)})",
            "check the format's name and options",
            job.place,
        ) from error


def apply_function(session: SparkSession, code: JobCode, frames: Sequence[DataFrame]) -> dict[str, DataFrame]:
    """What the job makes, per output topic (or under "" for a sink)."""
    job = code.spec
    try:
        result = _call(session, code, frames)
    except PenstockError:
        raise
    except Exception as error:
        problem, remedy = describe_error(error, [name for frame in frames for name in frame.columns])
        where = user_line(error, code.folder) or job.place
        raise SpecError("job", job.name, problem, remedy, where) from error
    return _by_output(job, result)


def _call(session: SparkSession, code: JobCode, frames: Sequence[DataFrame]) -> Any:
    if code.spec.sql is None:
        assert code.function is not None
        return code.function(*frames)
    for given, frame in zip(code.spec.inputs, frames, strict=True):
        frame.createOrReplaceTempView(view_of(given))
    return session.sql(code.spec.sql)


def view_of(given: Input) -> str:
    """The name under which SQL sees an input."""
    return given.view


def _by_output(job: JobSpec, result: Any) -> dict[str, DataFrame]:
    names = [output.topic or "" for output in job.outputs]
    if isinstance(result, dict):
        missing, extra = [n for n in names if n not in result], [n for n in result if n not in names]
        if missing or extra:
            raise SpecError(
                "job",
                job.name,
                f"returns the outputs {', '.join(map(str, result))} and writes {', '.join(names)}",
                "return a dict with exactly these topics' names",
                job.place,
            )
        frames = {str(name): frame for name, frame in result.items()}
    elif len(names) > 1:
        raise SpecError(
            "job",
            job.name,
            f"returns a {type(result).__name__} and writes several topics",
            f"return a dict with the keys {', '.join(names)}",
            job.place,
        )
    else:
        frames = {names[0]: result}
    for name, frame in frames.items():
        if not isinstance(frame, DataFrame):
            raise SpecError(
                "job",
                job.name,
                f"returns {_kind(frame)} where a frame is needed",
                "return the frame that it made",
                job.place,
            )
        if not frame.isStreaming:
            raise SpecError(
                "job",
                job.name,
                f"gives {name or 'its sink'} a static frame",
                "make it of a stream among the job's inputs",
                job.place,
            )
    return frames


def _kind(value: object) -> str:
    return "nothing" if value is None else f"a {type(value).__name__}"


def record_frame(code: JobCode, made: Mapping[str, DataFrame]) -> DataFrame:
    """All outputs as one frame of records, each row tagged with its topic's ordinal: one query, one commit."""
    names = [o.topic for o in code.spec.outputs if o.topic]
    encoded = [
        encode(made[n], code.topics[n], i, code.spec.name, code.spec.place) for i, n in enumerate(names)
    ]
    whole = encoded[0]
    for more in encoded[1:]:
        whole = whole.unionByName(more)
    return whole


def analyse(session: SparkSession, code: JobCode) -> DataFrame:
    """What the job writes, over frames without records: everything but running it."""
    frames = input_frames(session, code, lambda stream, topic: empty_records(session), reject_nothing)
    made = apply_function(session, code, frames)
    return record_frame(code, made) if code.spec.output_topics else made[""]


def check_stream(code: JobCode, frame: DataFrame) -> None:
    """Whether Spark would run this as a stream in the job's mode, asked of Spark itself; a SpecError when not."""
    machine, mode = jvm(frame.sparkSession), code.spec.options.output_mode.capitalize()
    checker = machine.org.apache.spark.sql.catalyst.analysis.UnsupportedOperationChecker
    with refusals_in_words(code.spec):
        checker.checkForStreaming(
            frame._jdf.queryExecution().analyzed(),
            getattr(machine.org.apache.spark.sql.streaming.OutputMode, mode)(),
        )


@contextmanager
def refusals_in_words(job: JobSpec) -> Generator[None]:
    """Spark refuses a query: the job's place, what is wrong, and what to do."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        problem, remedy = describe_stream_refusal(error, job.options.output_mode)
        raise SpecError("job", job.name, problem, remedy, job.place) from error


def empty_records(session: SparkSession) -> DataFrame:
    """A stream of records as topics hold them, that never brings one."""
    rate = session.readStream.format("rate").option("rowsPerSecond", 1).load()
    null = F.lit(None)
    return rate.select(
        null.cast("binary").alias("key"),
        null.cast("binary").alias("value"),
        null.cast("long").alias("timestamp"),
        null.cast("array<struct<key:string,value:binary>>").alias("headers"),
        null.cast("int").alias("partition"),
        null.cast("long").alias("offset"),
    )


def reject_nothing(stream: int, topic: TopicSpec) -> Reject:
    """For frames that are only analysed: no record ever comes."""
    return lambda reason: F.lit(False)


def reject_to(session: SparkSession, run: str, stream: int, topic: TopicSpec) -> Reject:
    """A filter that keeps a bad record for the dead-letter topic, or stops the job where the topic asks for that."""
    if topic.on_bad_record == "fail":
        return lambda reason: F.raise_error(
            F.concat(
                F.lit(f"topic {topic.name}: "),
                reason,
                F.lit(" (partition "),
                F.col("partition").cast("string"),
                F.lit(", offset "),
                F.col("offset").cast("string"),
                F.lit('); mend the record, or set on_bad_record="dead_letter"'),
            )
        ).isNotNull()
    name = f"penstock_dead_{stream}"
    jvm(session).penstock.DeadLetters.register(session._jsparkSession, run, str(stream), name)

    def reject(reason: Column) -> Column:
        columns = [F.col(c) for c in ("partition", "offset", "timestamp", "key", "value")]
        return F.call_function(name, *columns, reason)

    return reject
