"""Makes what settings name: topics, the bus that jobs read and write, the container's Spark session and executors.

Spark and Kafka are imported when they are needed, so that a command that needs neither starts fast.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Container, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.app.kafka_clients import client_settings
from penstock.app.settings import Settings
from penstock.authoring import Pipeline
from penstock.model.errors import ConflictError
from penstock.model.topics import TopicSpec
from penstock.ports.topics import Topics

if TYPE_CHECKING:
    from penstock.adapters.log import EmbeddedLog
    from penstock.spark.bus import Bus
    from penstock.spark.executors import Executors
    from penstock.spark.frames import JobCode
    from penstock.spark.session import ContainerSettings


def open_topics(settings: Settings) -> Topics:
    """The project's topics, for tools."""
    if settings.bus.kind == "kafka":
        from penstock.adapters.kafka import KafkaTopics

        _, tools = client_settings(settings.bus.client, os.environ)
        return KafkaTopics(settings.bus.servers, tools)
    return open_log(settings)


def open_log(settings: Settings) -> EmbeddedLog:
    """The project's embedded log."""
    from penstock.adapters.log import EmbeddedLog

    return EmbeddedLog(settings.log_folder, durable=settings.bus.durable)


def make_bus(settings: Settings, topics: Topics) -> Bus:
    """What jobs read from and write to."""
    if settings.bus.kind == "kafka":
        from penstock.spark.kafka import KafkaBus

        java, _ = client_settings(settings.bus.client, os.environ)
        client = {"bootstrap.servers": settings.bus.servers, **java}
        return KafkaBus(topics, client, read_by=settings.bus.read_by)
    from penstock.adapters.log import EmbeddedLog
    from penstock.spark.bus import LogBus

    assert isinstance(topics, EmbeddedLog)
    return LogBus(topics, sync=settings.bus.durable)


def container_settings(settings: Settings, name: str) -> ContainerSettings:
    """The Spark application that settings ask for."""
    from penstock.spark.session import ContainerSettings

    spark = settings.spark
    conf = dict(spark.conf)
    if spark.packages:
        given = [conf["spark.jars.packages"]] if conf.get("spark.jars.packages") else []
        conf["spark.jars.packages"] = ",".join([*given, *spark.packages])
    return ContainerSettings(
        work=settings.work,
        master=spark.master,
        slots=spark.slots,
        heap=spark.heap,
        jars=settings.jar_paths(),
        conf=conf,
        sync=settings.bus.durable,
        executor_slots=settings.executors.slots,
        executors_min=settings.executors.min,
        name=f"penstock-{name}",
    )


def make_executors(settings: Settings, session: Any) -> Executors:
    """How slots come and go."""
    from penstock.spark.executors import ElasticExecutors, FixedSlots

    if settings.spark.local:
        return FixedSlots(settings.spark.slots)
    held = settings.executors
    return ElasticExecutors(session, held.slots, held.min, held.max)


def job_codes(pipeline: Pipeline) -> list[JobCode]:
    """Every job with the owner's functions, ready to travel to Spark's workers."""
    from penstock.spark.frames import JobCode
    from penstock.spark.shipping import ship_by_value

    ship_by_value(pipeline.modules)
    topics: dict[str, TopicSpec] = {topic.name: topic for topic in pipeline.spec.topics}
    return [
        JobCode(
            spec,
            topics,
            pipeline.functions.get(spec.name),
            pipeline.foreach.get(spec.name),
            str(pipeline.folder),
        )
        for spec in pipeline.spec.jobs
    ]


_OTHER_FOLDER = "end it first, or give this one a work folder of its own with --set store.folder=DIR"


class ProjectLock:
    """One run at a time in a project's work folder: two would write the same checkpoints."""

    def __init__(self, work: Path, remedy: str = _OTHER_FOLDER) -> None:
        self._path = work / "run.lock"
        work.mkdir(parents=True, exist_ok=True)
        self._file = self._path.open("a+")
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.seek(0)
            holder = self._file.read().strip() or "another process"
            self._file.close()
            raise ConflictError(f"A run of this project is going on already ({holder}); {remedy}.") from None
        self._file.truncate(0)
        self._file.write(f"process {os.getpid()}")
        self._file.flush()

    def release(self) -> None:
        self._file.close()


@contextmanager
def project_at_rest(work: Path) -> Generator[None]:
    """No run is going on in a project, and none begins meanwhile; a ConflictError when one is."""
    if not work.is_dir():
        yield
        return
    lock = ProjectLock(work, "end it first")
    try:
        yield
    finally:
        lock.release()


def reads_and_writes(pipeline: Pipeline) -> tuple[tuple[str, str, str], ...]:
    """(writer, topic or format, reader) of each edge; an empty writer or reader is the world outside. Only topics join
    jobs: a source or sink is the world outside, also where a topic has the name of its format."""
    jobs = pipeline.spec.jobs
    written: dict[str, list[str]] = {}
    read: dict[str, list[str]] = {}
    for job in jobs:
        for topic in dict.fromkeys(job.input_topics):
            read.setdefault(topic, []).append(job.name)
        for topic in job.output_topics:
            written.setdefault(topic, []).append(job.name)
    topics = dict.fromkeys((*read, *written))
    outside = [
        *(
            ("", _outside(i.label, "source", topics), job.name)
            for job in jobs
            for i in job.inputs
            if i.source
        ),
        *((job.name, _outside(o.label, "sink", topics), "") for job in jobs for o in job.outputs if o.sink),
    ]
    return (
        *(edge for topic in topics for edge in _edges(written.get(topic, ()), topic, read.get(topic, ()))),
        *dict.fromkeys(outside),
    )


def _outside(label: str, kind: str, topics: Container[str]) -> str:
    return f"{label} ({kind})" if label in topics else label


def _edges(writers: Sequence[str], label: str, readers: Sequence[str]) -> list[tuple[str, str, str]]:
    return [(writer, label, reader) for writer in writers or ("",) for reader in readers or ("",)]
