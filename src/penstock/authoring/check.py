"""All that can be known to be wrong with a pipeline without Spark: names, wiring, keys, codecs, limits.

One problem, one `SpecError`, at the line of the declaration it is about. Whether a job's frame fits its
topic's columns takes Spark's analyser and is checked there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from penstock.authoring.loader import Pipeline
from penstock.authoring.reading import nearest
from penstock.authoring.schema import Column, parse_columns
from penstock.model.errors import SpecError
from penstock.model.graph import order_jobs
from penstock.model.jobs import JobSpec, PipelineSpec
from penstock.model.topics import TopicSpec

METADATA_COLUMNS = ("_key", "_partition", "_offset", "_timestamp", "_headers")
_TIMESTAMPS = ("timestamp", "timestamp_ntz", "timestamp_ltz")


def check_pipeline(pipeline: Pipeline) -> list[SpecError]:
    """Every problem found, in the order of the file; empty when there is none."""
    return check_spec(pipeline.spec)


def check_spec(spec: PipelineSpec) -> list[SpecError]:
    """The same, of a spec alone."""
    problems = [*_check_names(spec)]
    for topic in spec.topics:
        problems.extend(_check_topic(topic))
    for job in spec.jobs:
        problems.extend(_check_wiring(spec, job))
        problems.extend(_check_options(spec, job))
    try:
        order_jobs(spec)
    except SpecError as cycle:
        problems.append(cycle)
    return problems


def _check_names(spec: PipelineSpec) -> Iterator[SpecError]:
    first: dict[str, TopicSpec] = {}
    for topic in spec.topics:
        known = first.setdefault(topic.name, topic)
        if known is topic:
            continue
        other = known.model_copy(update={"place": topic.place}) != topic
        what = "is declared twice with different columns or settings" if other else "is declared twice"
        yield SpecError(
            "topic", topic.name, what, f"keep one declaration; the other is at {known.place}", topic.place
        )
    for topic in spec.topics:
        owner = next((t for t in spec.topics if t.dead_letter == topic.name), None)
        if owner is not None and owner.on_bad_record == "dead_letter":
            yield SpecError(
                "topic",
                topic.name,
                f"is the name of the dead-letter topic of {owner.name!r}",
                "choose another name",
                topic.place,
            )
    jobs: dict[str, JobSpec] = {}
    for job in spec.jobs:
        known_job = jobs.setdefault(job.name, job)
        if known_job is not job:
            yield SpecError(
                "job",
                job.name,
                "is declared twice",
                f"rename one; the other is at {known_job.place}",
                job.place,
            )


def _check_topic(topic: TopicSpec) -> Iterator[SpecError]:
    try:
        columns = {column.name: column for column in parse_columns("schema", topic.columns)}
    except SpecError as error:
        yield error.at(topic.place)
        return
    for field, name in (("key", topic.key), ("event_time", topic.event_time)):
        if name is not None and name not in columns:
            yield SpecError(
                field, name, f"is no column of topic {topic.name!r}", nearest(name, columns), topic.place
            )
    clock = columns.get(topic.event_time or "")
    if clock is not None and not clock.type.startswith(_TIMESTAMPS):
        yield SpecError(
            "event_time",
            clock.name,
            f"has the type {clock.type}, which is no point in time",
            "make its type timestamp",
            topic.place,
        )
    yield from _check_codec(topic, tuple(columns.values()))


def _check_codec(topic: TopicSpec, columns: tuple[Column, ...]) -> Iterator[SpecError]:
    wanted = {"string": "string", "raw": "binary"}.get(topic.codec)
    if wanted is None or (len(columns) == 1 and columns[0].type == wanted):
        return
    yield SpecError(
        "codec",
        topic.codec,
        f"cannot hold {topic.columns!r}",
        f'it holds one {wanted} column; write schema="value {wanted}", or use codec "json"',
        topic.place,
    )


def _check_wiring(spec: PipelineSpec, job: JobSpec) -> Iterator[SpecError]:
    topics = {topic.name: topic for topic in spec.topics}
    for field, names in (("reads", job.input_topics), ("writes", job.output_topics)):
        for name in names:
            if name not in topics:
                yield SpecError(
                    field, name, "is a topic that nobody declares", nearest(name, topics), job.place
                )
    for field, labels in (
        ("writes", [output.label for output in job.outputs]),
        ("reads", [given.view for given in job.inputs if given.view and job.sql]),
    ):
        for label, times in Counter(labels).items():
            if times > 1:
                yield SpecError(
                    field, label, f"stands {times} times in job {job.name!r}", "give each once", job.place
                )
    if all(given.source is not None and given.source.static for given in job.inputs):
        yield SpecError(
            "reads", job.name, "has only static inputs", "read at least one topic or stream", job.place
        )
    for given in job.inputs:
        topic = topics.get(given.topic or "")
        if topic is not None and given.metadata:
            taken = {column.name for column in _columns_of(topic)} & set(METADATA_COLUMNS)
            if taken:
                yield SpecError(
                    "reads",
                    topic.name,
                    f"already has the column {min(taken)} that metadata would add",
                    "rename the column, or read it without metadata",
                    job.place,
                )


def _check_options(spec: PipelineSpec, job: JobSpec) -> Iterator[SpecError]:
    options, place = job.options, job.place
    for name, value, low, high in (
        ("threads", options.threads, options.min_threads, options.max_threads),
        ("tasks", options.tasks, options.min_tasks, options.max_tasks),
    ):
        if low > high:
            yield SpecError(
                f"min_{name}",
                low,
                f"is above max_{name} = {high}",
                "lower the first or raise the second",
                place,
            )
        elif not low <= value <= high:
            yield SpecError(
                name, value, f"of job {job.name!r} is outside its limits", f"choose {low} to {high}", place
            )
    partitions = [t.partitions for t in spec.topics if t.name in job.input_topics]
    if partitions and options.tasks > min(partitions):
        yield SpecError(
            "tasks",
            options.tasks,
            f"of job {job.name!r} is more than the partitions of what it reads",
            f"choose at most {min(partitions)}, or give the topic more partitions",
            place,
        )
    by_spark = next((o.sink for o in job.outputs if o.sink is not None and not o.sink.function), None)
    if options.tasks > 1 and by_spark is not None:
        yield SpecError(
            "tasks",
            options.tasks,
            f"of job {job.name!r} write to one {by_spark.format} sink, which numbers its batches as if one query wrote "
            "to it and skips what the others bring",
            "set tasks = 1 (its threads may be more), or write with sink(foreach_batch=...) or to a topic",
            place,
        )
    if options.slo_lag_seconds <= options.interval_seconds:
        yield SpecError(
            "slo_lag",
            options.slo_lag_seconds,
            f"seconds is not above the trigger ({options.interval_seconds:g} seconds) of job {job.name!r}",
            "choose a shorter trigger or a larger slo_lag",
            place,
        )


def _columns_of(topic: TopicSpec) -> tuple[Column, ...]:
    try:
        return parse_columns("schema", topic.columns)
    except SpecError:
        return ()
