"""Which batch a sink that commits whole micro-batches takes. Pure; sinks keep the records in their own way.

Rules
- The same number in the same generation with the same offsets is a duplicate, with others a conflict.
- Batches of one generation form a chain: the first may start anywhere, each later one starts where the one before
  ended and has a higher number. Only so is a batch that was planned twice with different offsets noticed.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.errors import ConflictError
from penstock.model.ids import TopicPartition
from penstock.model.records import BatchCommit, CommittedBatch


def is_duplicate(batch: BatchCommit, same: CommittedBatch | None) -> bool:
    """Whether `same`, what is committed under this generation and number, is this very batch."""
    if same is None:
        return False
    if dict(same.start) == dict(batch.start) and dict(same.end) == dict(batch.end):
        return True
    raise ConflictError(
        f"{batch.producer} committed batch {batch.batch_id} before with other offsets: "
        f"{_differences(same.start, batch.start, 'start') or _differences(same.end, batch.end, 'end')}; "
        "plan the batch again with the recorded end."
    )


def check_follows(batch: BatchCommit, last: CommittedBatch | None) -> None:
    """Refuse a new batch that does not continue the newest one of its generation."""
    if last is None:
        return
    if batch.batch_id < last.batch_id:
        raise ConflictError(
            f"{batch.producer} commits batch {batch.batch_id} after batch {last.batch_id}; "
            "batches come in order: start a new generation to begin again."
        )
    if dict(last.end) != dict(batch.start):
        raise ConflictError(
            f"{batch.producer} commits batch {batch.batch_id}, which does not start where batch {last.batch_id} "
            f"ended: {_differences(last.end, batch.start, 'start')}; start from the recorded end, or as a new "
            "generation."
        )


def _differences(stored: Mapping[TopicPartition, int], came: Mapping[TopicPartition, int], what: str) -> str:
    """The first places where two maps of offsets differ, in words; empty when they are equal."""
    places = sorted(p for p in {*stored, *came} if stored.get(p) != came.get(p))
    shown = [f"{what} of {p} is recorded as {stored.get(p)} and came as {came.get(p)}" for p in places[:3]]
    more = f" and {len(places) - 3} more" if len(places) > 3 else ""
    return ", ".join(shown) + more
