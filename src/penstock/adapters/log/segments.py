"""Segment files: the written form of records, shared with the Java source and sink. This docstring is its definition.

A *segment file* `segments/<producer>-<uuid>.arrow` is created exclusively, written once and never changed. It holds
one or more *chunks* back to back, nothing before, between or after them. A *chunk* holds consecutive records of one
partition, in order, as one complete Arrow IPC *stream*: a schema message, record batches of at most 8,192 rows, and
the end-of-stream marker; uncompressed, no dictionaries. Its columns, in this order:

    key        binary, nullable
    value      binary, nullable
    timestamp  int64, milliseconds since 1970, never null
    headers    list<struct<key: utf8, value: binary>>, nullable; null where a record has none

Which topic, partition and offsets a chunk has is not in the file: the index says so, next to the chunk's position,
length, number of records and the CRC-32 (zlib's) of exactly those bytes. A reader checks the CRC before it trusts a
byte. Readers compare names and types of columns only: nullability and names of list items may differ by writer.
A file must be synced to the disk before the commit that names it.

This module is the only one that knows Arrow. It must not know the index.
"""

# pyarrow ships no types; `Rows` keeps it inside this module, and these rules speak of nothing else here.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportAttributeAccessIssue=false

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from penstock.adapters.log.faults import Faults, no_faults
from penstock.adapters.log.files import create_file, disk_errors_in_words, new_segment_name, safe_path
from penstock.model.errors import CorruptionError, SpecError
from penstock.model.ids import TopicPartition
from penstock.model.records import Chunk, Record, Written

BATCH_ROWS = 8192
BATCH_BYTES = 32 << 20
"""A record batch ends before it would pass this size, so that large records do not pile up in a reader."""
RECORD_BYTES_MAX = 1 << 30
"""Key plus value of one record: Arrow's offsets and Java's arrays end at 2 GB."""

_HEADERS = pa.list_(pa.struct([("key", pa.utf8()), ("value", pa.binary())]))
SCHEMA = pa.schema(
    [("key", pa.binary()), ("value", pa.binary()), ("timestamp", pa.int64()), ("headers", _HEADERS)]
)


class Rows:
    """Records of one partition in columns, in order."""

    __slots__ = ("_table",)

    def __init__(self, table: Any) -> None:
        self._table = table

    @classmethod
    def of(cls, records: Sequence[Record]) -> Rows:
        """Columns from records; their sizes together must stay below 2 GB."""
        keys = pa.array([r.key for r in records], pa.binary())
        values = pa.array([r.value for r in records], pa.binary())
        times = pa.array([r.timestamp_ms for r in records], pa.int64())
        if any(r.headers for r in records):
            headers = pa.array([_headers_out(r) for r in records], _HEADERS)
        else:
            headers = pa.nulls(len(records), _HEADERS)
        return cls(pa.Table.from_arrays([keys, values, times, headers], schema=SCHEMA))

    @classmethod
    def joined(cls, parts: Sequence[Rows]) -> Rows:
        return cls(pa.concat_tables([part._table for part in parts]))

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def slice(self, start: int, length: int) -> Rows:
        return Rows(self._table.slice(start, length))

    def take(self, rows: NDArray[np.int64]) -> Rows:
        """These rows, in this order."""
        return Rows(self._table.take(pa.array(rows)))

    def records(self) -> Iterator[Record]:
        """The rows as records, in order."""
        columns = [self._table.column(i).to_pylist() for i in range(4)]
        for key, value, at, headers in zip(*columns, strict=True):
            found = tuple((h["key"], h["value"]) for h in headers) if headers else ()
            yield Record(key, value, at, found)

    @property
    def payload_bytes(self) -> int:
        """Bytes of keys, values and headers."""
        return int(_sizes(self._table).sum())

    @property
    def max_timestamp_ms(self) -> int:
        return int(pc.max(self._table.column(2)).as_py() or 0)

    def first_at(self, timestamp_ms: int) -> int | None:
        """Index of the first row that is as young as this time (milliseconds since 1970), or younger."""
        young = np.asarray(self._table.column(2).to_numpy()) >= timestamp_ms
        return int(young.argmax()) if young.any() else None

    def encode(self) -> bytes:
        """The rows as one chunk."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, SCHEMA) as stream:
            for batch in _batches(self._table):
                stream.write_batch(batch)
        return sink.getvalue().to_pybytes()


def write_chunks(
    folder: Path,
    producer: str,
    parts: Sequence[tuple[TopicPartition, Rows]],
    *,
    durable: bool = True,
    faults: Faults = no_faults,
) -> tuple[Written, ...]:
    """Write one new segment file with a chunk per part, in order; it is an orphan until a commit names it."""
    if not parts:
        return ()
    name = new_segment_name(producer)
    written: list[Written] = []

    def pieces() -> Iterator[bytes]:
        position = 0
        for place, rows in parts:
            data = rows.encode()
            chunk = Chunk(name, position, len(data), zlib.crc32(data), len(rows), 0)
            written.append(Written(place, chunk, rows.payload_bytes, rows.max_timestamp_ms))
            position += len(data)
            yield data

    with disk_errors_in_words(folder):
        create_file(safe_path(folder, name), pieces(), durable, faults)
    return tuple(written)


def read_chunk(folder: Path, chunk: Chunk, place: TopicPartition | None = None) -> Rows:
    """A chunk's rows, checked; a `CorruptionError` names the file and what of which partition it held."""
    data = _read_bytes(folder, chunk, place)
    if zlib.crc32(data) != chunk.crc32:
        raise _corrupt(chunk, place, "does not match its checksum")
    try:
        table = pa.ipc.open_stream(pa.py_buffer(data)).read_all()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OSError) as error:
        raise _corrupt(chunk, place, f"is not an Arrow stream ({error})") from error
    if not _has_our_columns(table.schema):
        raise _corrupt(chunk, place, f"has other columns than a chunk ({table.schema.names})")
    if table.num_rows != chunk.records:
        raise _corrupt(chunk, place, f"holds {table.num_rows} records instead of {chunk.records}")
    return Rows(table if table.schema.equals(SCHEMA) else table.cast(SCHEMA))


def check_record(record: Record) -> None:
    """Refuse a record that no chunk can hold."""
    size = len(record.key or b"") + len(record.value or b"")
    if size > RECORD_BYTES_MAX:
        raise SpecError(
            "record",
            f"{size} bytes",
            "is larger than a record may be",
            f"keep it under {RECORD_BYTES_MAX} bytes",
        )


def _read_bytes(folder: Path, chunk: Chunk, place: TopicPartition | None) -> bytes:
    try:
        descriptor = os.open(safe_path(folder, chunk.path), os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        raise _corrupt(chunk, place, "is missing") from None
    try:
        data = os.pread(descriptor, chunk.length, chunk.position)
        while len(data) < chunk.length:  # one call reads 2 GB at most, and may be interrupted
            more = os.pread(descriptor, chunk.length - len(data), chunk.position + len(data))
            if not more:
                raise _corrupt(chunk, place, f"ends {chunk.length - len(data)} bytes early")
            data += more
    except OSError as error:
        raise _corrupt(chunk, place, f"cannot be read ({error.strerror})") from error
    finally:
        os.close(descriptor)
    return data


def _corrupt(chunk: Chunk, place: TopicPartition | None, problem: str) -> CorruptionError:
    offsets = f"offsets {chunk.base_offset} to {chunk.base_offset + chunk.records - 1}"
    what = f"topic {place.topic}, partition {place.partition}, {offsets}" if place else offsets
    return CorruptionError(
        f"The segment file {chunk.path} {problem} at byte {chunk.position} ({chunk.length} bytes: {what}); "
        "other partitions are not touched. Restore the file from a copy, or skip these offsets."
    )


def _headers_out(record: Record) -> list[dict[str, Any]] | None:
    return [{"key": key, "value": value} for key, value in record.headers] or None


def _has_our_columns(schema: Any) -> bool:
    if schema.names != SCHEMA.names or any(schema.types[i] != SCHEMA.types[i] for i in range(3)):
        return False
    headers = schema.types[3]
    if not pa.types.is_list(headers) or not pa.types.is_struct(headers.value_type):
        return False
    fields = headers.value_type
    return (
        fields.num_fields == 2 and fields.field(0).type == pa.utf8() and fields.field(1).type == pa.binary()
    )


def _sizes(table: Any) -> NDArray[np.int64]:
    """Bytes of key, value and headers per row."""
    total = np.zeros(table.num_rows, dtype=np.int64)
    for column in (0, 1):
        lengths = pc.fill_null(pc.binary_length(table.column(column)), 0)
        total += np.asarray(lengths.to_numpy(), dtype=np.int64)
    headers = table.column(3)
    if headers.null_count < table.num_rows:
        rows = pc.list_parent_indices(headers).to_numpy()
        fields = pc.list_flatten(headers)
        for name in ("key", "value"):
            lengths = pc.fill_null(pc.binary_length(pc.struct_field(fields, name)), 0)
            np.add.at(total, rows, np.asarray(lengths.to_numpy(), dtype=np.int64))
    return total


def _batches(table: Any) -> Iterator[Any]:
    """Record batches of at most BATCH_ROWS rows and, save for one larger record, BATCH_BYTES."""
    if table.nbytes <= BATCH_BYTES:
        yield from table.combine_chunks().to_batches(max_chunksize=BATCH_ROWS)
        return
    ends = np.cumsum(_sizes(table))
    start, done = 0, 0
    while start < table.num_rows:
        stop = int(np.searchsorted(ends, done + BATCH_BYTES, side="right"))
        stop = min(max(stop, start + 1), start + BATCH_ROWS, table.num_rows)
        yield from table.slice(start, stop - start).combine_chunks().to_batches()
        start, done = stop, int(ends[stop - 1])
