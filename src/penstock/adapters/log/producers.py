"""Who may commit what: fences and the chain of batches of each producer. Functions over an open transaction.

Rules
- A producer is a task (`count-0`), its job is the name before the index. A job has one generation at a time: once a
  task of a newer one opened, tasks of older ones are refused, whatever their index. Within a generation a producer's
  older epochs are refused.
- Which batches follow each other: `topics/admission.py`.
- The newest `keep` batches of a producer stay known, whatever generation they are of.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from penstock.adapters.topics.admission import check_follows, is_duplicate
from penstock.model.errors import FencedError
from penstock.model.ids import Fence, TopicPartition
from penstock.model.records import BatchCommit, CommittedBatch

_COLUMNS = "producer, generation, batch_id, epoch, starts, ends"


def job_of(producer: str) -> str:
    """The job that a producer is a task of: its name without a trailing `-<index>`."""
    job, _, index = producer.rpartition("-")
    return job if job and index.isdecimal() else producer


def raise_fence(db: sqlite3.Connection, producer: str, fence: Fence) -> None:
    """Let this run write, and none that is older; a `FencedError` when this one is the older."""
    job = job_of(producer)
    known = db.execute("SELECT generation FROM job WHERE name = ?", (job,)).fetchone()
    if known is not None and fence.generation < known[0]:
        raise FencedError(
            f"{producer} ({fence}) may not write any more: job {job} is at generation {known[0]}; "
            "stop this run, a newer one has taken over."
        )
    row = db.execute("SELECT generation, epoch FROM producer WHERE name = ?", (producer,)).fetchone()
    seen = Fence(*row) if row is not None else None
    if seen == fence:
        return
    if seen is not None and fence < seen:
        raise FencedError(
            f"{producer} ({fence}) may not write any more: {seen} has opened it; stop this run, a newer one has "
            "taken over."
        )
    if known is None or fence.generation > known[0]:
        db.execute("INSERT OR REPLACE INTO job VALUES (?, ?)", (job, fence.generation))
    db.execute("INSERT OR REPLACE INTO producer VALUES (?, ?, ?)", (producer, fence.generation, fence.epoch))


def admit_batch(db: sqlite3.Connection, batch: BatchCommit) -> CommittedBatch | None:
    """Check fence and chain; the commit that holds this batch already, or None when it is new."""
    raise_fence(db, batch.producer, batch.fence)
    generation = batch.fence.generation
    same = _select(db, batch.producer, "AND generation = ? AND batch_id = ?", (generation, batch.batch_id))
    if is_duplicate(batch, same):
        return same
    check_follows(batch, _select(db, batch.producer, "AND generation = ?", (generation,)))
    return None


def record_batch(db: sqlite3.Connection, batch: BatchCommit, keep: int) -> None:
    """Remember a batch, and forget this producer's oldest ones beyond `keep`."""
    fence = batch.fence
    db.execute(
        f"INSERT INTO batch ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)",
        (batch.producer, fence.generation, batch.batch_id, fence.epoch, _pack(batch.start), _pack(batch.end)),
    )
    db.execute(
        "DELETE FROM batch WHERE rowid IN (SELECT rowid FROM batch WHERE producer = ? "
        "ORDER BY generation DESC, batch_id DESC LIMIT -1 OFFSET ?)",
        (batch.producer, keep),
    )


def is_first_of_generation(db: sqlite3.Connection, batch: BatchCommit) -> bool:
    """Whether this generation of the producer has committed nothing yet."""
    return _select(db, batch.producer, "AND generation = ?", (batch.fence.generation,)) is None


def find_batch(db: sqlite3.Connection, producer: str, batch_id: int | None) -> CommittedBatch | None:
    """A producer's newest commit, or that of one batch, of the newest generation that holds one."""
    return (
        _select(db, producer, "", ())
        if batch_id is None
        else _select(db, producer, "AND batch_id = ?", (batch_id,))
    )


def _select(
    db: sqlite3.Connection, producer: str, condition: str, values: tuple[int, ...]
) -> CommittedBatch | None:
    row = db.execute(
        f"SELECT {_COLUMNS} FROM batch WHERE producer = ? {condition} ORDER BY generation DESC, batch_id DESC LIMIT 1",
        (producer, *values),
    ).fetchone()
    if row is None:
        return None
    name, generation, batch_id, epoch, starts, ends = row
    return CommittedBatch(name, Fence(generation, epoch), batch_id, _unpack(starts), _unpack(ends))


def _pack(offsets: Mapping[TopicPartition, int]) -> str:
    by_topic: dict[str, dict[int, int]] = {}
    for place, offset in offsets.items():
        by_topic.setdefault(place.topic, {})[place.partition] = offset
    return json.dumps(by_topic, separators=(",", ":"))


def _unpack(text: str) -> dict[TopicPartition, int]:
    by_topic: dict[str, dict[str, int]] = json.loads(text)
    return {
        TopicPartition(topic, int(number)): offset
        for topic, offsets in by_topic.items()
        for number, offset in offsets.items()
    }
