"""Kafka exactly once: all that a batch writes, its dead letters and its progress are one transaction of one producer.

Rules
- Rows come to the driver with their Spark partitions' commit messages and are sent from there: a batch is there whole or
  not at all, whatever is killed, and a replay may split it otherwise or make other rows of it.
- The marker is the job's own consumer group: each partition's offset is where the batch ended; its note says which task,
  fence and batch put it there, and where that batch began. Who is killed after the commit finds it there.
- `open` takes over its transactional id, so that an older run of the task is refused by the broker; a new generation
  takes over those of all tasks that held its partitions before. Only then is the marker read, and signed with the new
  fence, so that an older run cannot open later.
- A batch that ends where the marker stands is known and dropped; one that begins there is new; any other is an error.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, cast

from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.model.errors import ConflictError, EnvironmentProblem, FencedError, SpecError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.jobs import JobSpec
from penstock.model.records import BatchCommit, CommittedBatch, Record
from penstock.ports.topics import MarkedTopics
from penstock.spark.bus import Committed, SinkTask, renumbered
from penstock.spark.hub import run_name
from penstock.spark.kafka import KafkaBus, written
from penstock.spark.session import jvm

HOLD_BYTES = 128 << 20
"""What one Spark partition may make in a batch: it passes through the driver's memory."""
BATCH_BYTES = 64 << 20
"""What a batch may read where its owner sets no limit, for the same reason."""
_FENCED = ("ProducerFencedException", "InvalidProducerEpochException", "FencedInstanceIdException")
_SIGNED_WITHIN_SECONDS = 2.0
"""A run that takes over signs the marker within this time."""
_SETTINGS = {
    "transaction.timeout.ms": "60000",
    "max.block.ms": "30000",
    "delivery.timeout.ms": "30000",
    "request.timeout.ms": "10000",
}


_END = "\0"
"""Ends a note: confluent-kafka reads one as a C string, and without this on into whatever lies behind it."""
_NOBODY = Fence(0, 0)


@dataclass(frozen=True)
class Mark:
    """What the marker says of one partition: how far, and by which batch of which run."""

    end: int
    task: str = ""
    fence: Fence = _NOBODY
    batch_id: int = -1
    """-1: signed by `open`, no batch of this generation yet."""
    start: int = 0

    def note(self) -> str:
        held = {"task": self.task, "fence": [self.fence.generation, self.fence.epoch]}
        return json.dumps(held | {"batch": self.batch_id, "start": self.start}, separators=(",", ":")) + _END


def read_mark(end: int, note: str) -> Mark:
    """A mark, also where someone else set the offset (a tool's reset has no note of ours)."""
    try:
        held, _ = json.JSONDecoder().raw_decode(note)
        return Mark(end, held["task"], Fence(*held["fence"]), held["batch"], held["start"])
    except (ValueError, KeyError, TypeError):
        return Mark(end)


def newest_of(task: str, fence: Fence, marks: Mapping[TopicPartition, Mark]) -> CommittedBatch | None:
    """The newest batch of a task's generation that its partitions' marks tell of; what it did not move stands still."""
    mine = {p: m for p, m in marks.items() if m.task == task and m.fence.generation == fence.generation}
    newest = max((mark.batch_id for mark in mine.values()), default=-1)
    if newest < 0:
        return None
    start = {p: m.start if m.batch_id == newest else m.end for p, m in mine.items()}
    return CommittedBatch(task, fence, newest, start, {p: m.end for p, m in mine.items()})


def is_known(held: CommittedBatch | None, commit: BatchCommit) -> bool:
    """Whether a batch is in Kafka already; a `ConflictError` when it neither begins nor ends where Kafka stands."""
    if held is None:
        return False
    at_start = all(held.end.get(place, at) == at for place, at in commit.start.items())
    at_end = all(held.end.get(place, at) == at for place, at in commit.end.items())
    if at_start:
        return at_end and commit.batch_id <= held.batch_id
    if at_end:
        return True
    raise ConflictError(
        f"Task {commit.producer}, batch {commit.batch_id}: it neither begins nor ends where Kafka holds its batch "
        f"{held.batch_id}; the checkpoint was copied or restored, or the consumer group's offsets were reset, so start "
        f"the job anew: `penstock reset {commit.reader}`."
    )


@dataclass
class _Run:
    """A run that may write."""

    task: TaskId
    fence: Fence
    newest: CommittedBatch | None


class TransactionalBus(KafkaBus):
    """One job's view of Kafka, with its output in transactions."""

    batch_bytes = BATCH_BYTES

    def __init__(self, plain: KafkaBus, session: SparkSession, job: JobSpec) -> None:
        if not job.input_topics:
            raise SpecError(
                f"job {job.name!r} exactly_once",
                True,
                "needs an input topic, whose offsets say what is written",
                "read a topic, or leave exactly_once out",
                job.place,
            )
        super().__init__(plain.topics, plain.client, read_by=plain.read_by, faults=plain.faults)
        self.spark_plans, self.notice = plain.spark_plans, plain.notice
        self._marked = cast("MarkedTopics", plain.topics)
        self._job = job
        self._machine: Any = jvm(session).penstock.KafkaTransactions
        self._runs: dict[str, _Run] = {}
        self._newest_run: dict[TaskId, str] = {}

    def write(self, frame: DataFrame, sink: SinkTask) -> DataStreamWriter:
        return super().write(frame, sink).option("hold", HOLD_BYTES)

    def open(
        self, task: TaskId, fence: Fence, places: Sequence[TopicPartition] = ()
    ) -> CommittedBatch | None:
        seen = self._marks(places, stable=False)
        # Before anything is taken over: an older run must not disturb a newer one.
        _check_newest(task, fence, seen)
        run = run_name(task, fence)
        try:
            newest = self._take_over(task, fence, places, seen)
        except BaseException:
            with suppress(Exception):  # what stopped the start is what is told
                self._machine.close(run)
            raise
        self._runs[run] = _Run(task, fence, newest)
        self._newest_run[task] = run
        return newest

    def _take_over(
        self,
        task: TaskId,
        fence: Fence,
        places: Sequence[TopicPartition],
        seen: Mapping[TopicPartition, Mark],
    ) -> CommittedBatch | None:
        """Refuse older runs at the broker, then sign the marker as they left it."""
        run, id_ = run_name(task, fence), _transactional_id(str(task), fence.generation)
        with self._errors_in_words(task):
            self._machine.open(run, id_, self._client_settings())
            for old in {_transactional_id(m.task, m.fence.generation) for m in seen.values() if m.task}:
                if old != id_:
                    self._machine.open(old, old, self._client_settings())
                    self._machine.close(old)
        marks = self._marks(places)
        _check_newest(task, fence, marks)
        signed = _sign(task, fence, marks, self._begins(places, marks))
        with self._errors_in_words(task):
            self._machine.mark(run, self._job.name, _entries(signed))
            self._machine.commit(run)
        return newest_of(str(task), fence, signed)

    def generation(self, job: str, places: Sequence[TopicPartition]) -> int:
        marks = self._marks(places, stable=False).values()
        return max((mark.fence.generation for mark in marks), default=0)

    def close(self, task: TaskId, fence: Fence) -> None:
        if self._runs.pop(run_name(task, fence), None) is not None:
            self._machine.close(run_name(task, fence))

    def committed(self, task: TaskId, batch_id: int) -> CommittedBatch | None:
        run = self._runs.get(self._newest_run.get(task, ""))
        newest = run.newest if run is not None else None
        return newest if newest is not None and newest.batch_id == batch_id else None

    def commit(self, commit: BatchCommit, messages: Sequence[str], outputs: Sequence[str]) -> Committed:
        name = run_name(commit.producer, commit.fence)
        run = self._runs.get(name)
        if run is None:
            raise FencedError(
                f"Task {commit.producer}, {commit.fence}, has ended here; it may not write any more."
            )
        if run.newest is not None and is_known(run.newest, commit):
            run.newest = renumbered(run.newest, commit)
            return written((), duplicate=True)
        marks = {
            place: Mark(end, commit.producer, commit.fence, commit.batch_id, commit.start[place])
            for place, end in commit.end.items()
        }
        with self._errors_in_words(run.task, commit):
            self.faults("begin")
            self._machine.send(name, commit.reader, _entries(marks), _letters(commit.records))
            self.faults("sent")
            self._machine.commit(name)
            self.faults("committed")
        run.newest = CommittedBatch(commit.producer, commit.fence, commit.batch_id, commit.start, commit.end)
        return written(messages)

    def _client_settings(self) -> str:
        return json.dumps(_SETTINGS | self._writer)

    def _marks(self, places: Sequence[TopicPartition], *, stable: bool = True) -> dict[TopicPartition, Mark]:
        held = self._marked.marked_progress(self._job.name, places, stable=stable)
        return {place: read_mark(end, note) for place, (end, note) in held.items()}

    def _begins(
        self, places: Sequence[TopicPartition], marks: Mapping[TopicPartition, Mark]
    ) -> dict[TopicPartition, int]:
        """Where partitions begin that no batch of the job has touched."""
        new = [place for place in places if place not in marks]
        begins = self.topics.begin_offsets(sorted({p.topic for p in new})) if new else {}
        return {place: begins.get(place, 0) for place in new}

    @contextmanager
    def _errors_in_words(self, task: TaskId, commit: BatchCommit | None = None) -> Generator[None]:
        try:
            yield
        except Py4JJavaError as error:
            kinds = _causes(error)
            if commit is not None and any(kind.startswith(_FENCED) for kind in kinds):
                self._wait_for_newer(task, commit)
            raise EnvironmentProblem(
                f"Kafka did not take a transaction of task {task} ({kinds[-1]}); nothing of it can be seen, and it is "
                "tried again: look at the brokers if this stays."
            ) from error

    def _wait_for_newer(self, task: TaskId, commit: BatchCommit) -> None:
        """A `FencedError` when a newer run has signed; the broker also refuses who took too long over a transaction."""
        deadline = time.monotonic() + _SIGNED_WITHIN_SECONDS
        while time.monotonic() < deadline:
            _check_newest(task, commit.fence, self._marks(list(commit.end), stable=False))
            time.sleep(0.1)


def _check_newest(task: TaskId, fence: Fence, marks: Mapping[TopicPartition, Mark]) -> None:
    """Refuse a run that is older than one which signed any of its partitions."""
    newer = max((m for m in marks.values() if m.fence > fence), key=lambda m: m.fence, default=None)
    if newer is not None:
        raise FencedError(
            f"Task {task}, {fence}: a newer one has taken over ({newer.task}, {newer.fence}); this run ends for good."
        )


def _sign(
    task: TaskId, fence: Fence, marks: Mapping[TopicPartition, Mark], begins: Mapping[TopicPartition, int]
) -> dict[TopicPartition, Mark]:
    """The marks as a run takes them over: of its own generation with their batch, others as where it begins."""
    signed: dict[TopicPartition, Mark] = {
        place: Mark(at, str(task), fence, start=at) for place, at in begins.items()
    }
    for place, mark in marks.items():
        mine = mark.task == str(task) and mark.fence.generation == fence.generation
        signed[place] = (
            replace(mark, fence=fence) if mine else Mark(mark.end, str(task), fence, start=mark.end)
        )
    return signed


def _transactional_id(task: str, generation: int) -> str:
    return f"penstock.{task}.{generation}"


def _entries(marks: Mapping[TopicPartition, Mark]) -> str:
    """Marks as the Java side takes them."""
    return json.dumps([[p.topic, p.partition, mark.end, mark.note()] for p, mark in marks.items()])


def _letters(records: Sequence[tuple[TopicPartition, Record]]) -> str:
    """Records given by value, as the Java side takes them."""
    return json.dumps(
        [
            [
                p.topic,
                p.partition,
                _text(r.key),
                _text(r.value),
                r.timestamp_ms,
                [[n, _text(v)] for n, v in r.headers],
            ]
            for p, r in records
        ]
    )


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _causes(error: Py4JJavaError) -> list[str]:
    """Kind and words of a Java exception and its causes, outermost first."""
    found: list[str] = []
    at: Any = error.java_exception
    while at is not None:
        found.append(f"{at.getClass().getSimpleName()}: {at.getMessage()}")
        at = at.getCause()
    return found
