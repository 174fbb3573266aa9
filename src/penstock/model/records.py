"""Records, offset ranges and commits: what moves through topics, whatever technology holds them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from penstock.model.ids import Fence, TopicPartition


@dataclass(frozen=True, slots=True)
class Record:
    """A topic's record, Kafka's shape. `timestamp_ms` is milliseconds since 1970."""

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A record with its place in the log."""

    place: TopicPartition
    offset: int
    record: Record


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Records `start` (included) to `end` (excluded) of one partition."""

    place: TopicPartition
    start: int
    end: int

    @property
    def records(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, slots=True)
class Chunk:
    """A contiguous run of one partition's records inside a segment file, as a complete Arrow IPC stream."""

    path: str
    """Of the segment file, relative to the log's folder."""
    position: int
    """Byte at which the chunk starts."""
    length: int
    """Bytes that it takes."""
    crc32: int
    """CRC-32 (zlib's) of exactly those bytes."""
    records: int
    base_offset: int
    """Offset of its first record; 0 until committed."""


@dataclass(frozen=True, slots=True)
class Written:
    """What one writer produced for one topic partition; base offsets are given at the commit."""

    place: TopicPartition
    chunk: Chunk
    payload_bytes: int
    """Bytes of keys, values and headers."""
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class BatchCommit:
    """All that one micro-batch wrote, and the source offsets it came from: one transaction, or nothing."""

    producer: str
    """The task that writes; commits are numbered and fenced per producer."""
    fence: Fence
    batch_id: int
    start: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]
    reader: str = ""
    """Whose progress `end` becomes, in the same transaction; empty records none."""
    written: tuple[Written, ...] = ()
    records: tuple[tuple[TopicPartition, Record], ...] = ()
    """Few records given by value (dead letters), appended after `written`."""


@dataclass(frozen=True, slots=True)
class CommitResult:
    """`duplicate` when the same batch was committed before: nothing was written again."""

    duplicate: bool
    records: int


@dataclass(frozen=True, slots=True)
class CommittedBatch:
    """The newest commit that a sink holds of a producer."""

    producer: str
    fence: Fence
    batch_id: int
    start: Mapping[TopicPartition, int]
    end: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class ReaderProgress:
    """How far one reader is in one partition: `offset` is the next that it takes."""

    reader: str
    place: TopicPartition
    offset: int
    at: float | None = None
    """When it said so, in seconds since 1970; None where the store does not tell."""


@dataclass(frozen=True, slots=True)
class PartitionInfo:
    """One partition as it stands. Records in [`begin`, `end`) can be read."""

    place: TopicPartition
    begin: int
    end: int
    size_bytes: int = 0


@dataclass(frozen=True, slots=True)
class TopicInfo:
    """A topic as its store describes it."""

    name: str
    partitions: tuple[PartitionInfo, ...]
    config: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def records(self) -> int:
        return sum(p.end - p.begin for p in self.partitions)
