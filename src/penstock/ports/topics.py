"""Topics: one interface, two kinds (the embedded log and Kafka).

`Topics` is what tools and loops need. `SegmentLog` is what only a log read by files needs, `MarkedTopics` what only
Kafka's transactions need; the Spark room's sources and sinks speak them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import (
    BatchCommit,
    Chunk,
    CommitResult,
    CommittedBatch,
    OffsetRange,
    ReaderProgress,
    Record,
    StoredRecord,
    TopicInfo,
)

LOG_CONFIG = ("retention.bytes", "retention.ms")
"""Settings of a topic, by Kafka's names, that the embedded log acts on."""


class Topics(Protocol):
    """Make, list, read and write topics; offsets as in Kafka."""

    kind: str
    """`log` or `kafka`."""

    def create(self, topic: str, partitions: int, config: Mapping[str, str] | None = None) -> bool:
        """Make a topic; False when one with as many partitions is there, which then gets the config that is given.
        Another number of partitions is a ConflictError."""
        ...

    def delete(self, topic: str) -> None: ...

    def topics(self) -> list[str]: ...

    def describe(self, topic: str) -> TopicInfo:
        """Partitions with their offsets; a MissingError names the topics there are."""
        ...

    def end_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        """The offset after each partition's newest committed record."""
        ...

    def begin_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]: ...

    def offsets_at(self, topic: str, timestamp_ms: int) -> dict[TopicPartition, int]:
        """Per partition the first offset whose record is as young as this time (milliseconds since 1970), or
        younger; the end where there is none."""
        ...

    def append(
        self, topic: str, records: Iterable[Record], partition: int | None = None
    ) -> dict[TopicPartition, OffsetRange]:
        """Append by Kafka's default partitioner, or to one partition; what was written, per partition."""
        ...

    def read(self, place: TopicPartition, start: int, limit: int) -> list[StoredRecord]:
        """Up to `limit` committed records from `start` on (from the first kept one when that is later)."""
        ...

    def commit_progress(self, reader: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Record how far a reader has come: usual lag tools see it, retention waits for it."""
        ...

    def progress(
        self, reader: str, topics: Sequence[str], *, stable: bool = True
    ) -> dict[TopicPartition, int]:
        """How far a reader has come in these topics; empty where it was never heard of, or the topic is not there.
        `stable` waits for transactions that are under way on it, which is for who begins there and not for who looks."""
        ...

    def forget_reader(self, reader: str) -> bool:
        """Forget how far a reader has come, in all topics; False when it was never heard of."""
        ...

    def readers(self, topic: str) -> list[ReaderProgress]:
        """All readers that said how far they are in a topic, by name and partition."""
        ...

    def close(self) -> None: ...


class MarkedTopics(Topics, Protocol):
    """What Kafka adds: a reader's progress carries a note, written in the same transaction as records."""

    def marked_progress(
        self, reader: str, places: Sequence[TopicPartition], *, stable: bool = True
    ) -> dict[TopicPartition, tuple[int, str]]:
        """Per place that has any: offset and note. `stable` waits for transactions that are under way on it."""
        ...


class Damage(Protocol):
    """One thing that is wrong with what is kept."""

    @property
    def kind(self) -> str: ...

    @property
    def path(self) -> str:
        """The file; empty when it is the index."""
        ...

    @property
    def sentence(self) -> str: ...


class KeptTopics(Topics, Protocol):
    """What topics add whose files are ours to look after."""

    def verify(self, topic: str | None = None) -> Iterator[Damage]:
        """What is torn, corrupt, missing or left out, of one topic or all; changes nothing."""
        ...

    def retain(self, topic: str | None = None, *, force: bool = False) -> int:
        """Drop now what one topic, or each, need not keep; how many records. `force`: also what readers still need."""
        ...


class SegmentLog(Topics, Protocol):
    """What the embedded log adds: chunks of files to read, and commits that hold a whole micro-batch."""

    @property
    def segment_folder(self) -> str:
        """Where writers put new segment files (absolute)."""
        ...

    def locate(self, ranges: Sequence[OffsetRange]) -> list[list[Chunk]]:
        """Per range, the chunks that hold it, in order, gap-free; MissingError when retention took records."""
        ...

    def commit(self, batch: BatchCommit) -> CommitResult:
        """All or nothing. A known batch with equal offsets is a duplicate, with others a ConflictError; an older
        fence is a FencedError."""
        ...

    def open_producer(self, producer: str, fence: Fence) -> CommittedBatch | None:
        """Fence off every older run of this producer, and say what it committed last."""
        ...

    def committed(self, producer: str, batch_id: int | None = None) -> CommittedBatch | None:
        """The newest commit of a producer, or that of one batch."""
        ...

    def discard(self, paths: Sequence[str]) -> int:
        """Delete written files that no commit holds (after an abort); how many."""
        ...
