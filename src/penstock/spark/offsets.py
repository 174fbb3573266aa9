"""Offsets as Spark keeps them: JSON that says whose they are.

Spark's own offset log is positional: a job that swaps the order in which it reads two topics would swap their offsets
without a word. So each carries its topic and stream, and a stream refuses what is not its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.model.errors import ConflictError


@dataclass(frozen=True, slots=True)
class StreamId:
    """One read of one topic by one job: the n-th argument of its function."""

    job: str
    topic: str
    ordinal: int

    def __str__(self) -> str:
        return f"{self.job}/{self.topic}/{self.ordinal}"


def dump_offsets(stream: StreamId, offsets: Mapping[int, int]) -> str:
    """Offsets per partition, as Spark's checkpoint will hold them."""
    parts = {str(p): offsets[p] for p in sorted(offsets)}
    return json.dumps({"topic": stream.topic, "stream": str(stream), "offsets": parts}, separators=(",", ":"))


def load_offsets(stream: StreamId, text: str) -> dict[int, int]:
    """Offsets per partition; those of another stream or topic are a `ConflictError` that names both."""
    held = json.loads(text)
    if held.get("stream") != str(stream):
        raise ConflictError(
            f"The checkpoint of job {stream.job!r} holds offsets of {held.get('stream')!r} where it now reads "
            f"{str(stream)!r}; put its inputs back in the old order, or start it anew: `penstock reset {stream.job}`."
        )
    return {int(p): int(at) for p, at in held["offsets"].items()}


def newest_batch(folder: Path) -> int:
    """The highest batch number in a checkpoint's folder (`offsets`, `commits`); -1 when it holds none."""
    try:
        return max((int(p.name) for p in folder.iterdir() if p.name.isdigit()), default=-1)
    except FileNotFoundError:
        return -1


def batch_ends(checkpoint: Path, batch_id: int) -> list[str]:
    """Where a batch ends in each source that has begun, as Spark's checkpoint holds it: two lines, then one per source, in
    the order of its plan, also of sources that are no topics.
    """
    lines = (checkpoint / "offsets" / str(batch_id)).read_text().splitlines()[2:]
    return [line for line in lines if line != "-"]


def ends_of(streams: Sequence[StreamId], ends: Sequence[str]) -> dict[int, str]:
    """Each stream's own offsets among those of a batch, by its place among the streams."""
    numbers = {str(identity): number for number, identity in enumerate(streams)}
    named = [(json.loads(text), text) for text in ends if text.startswith("{")]
    return {numbers[held["stream"]]: text for held, text in named if held.get("stream") in numbers}


def check_forward(stream: StreamId, start: Mapping[int, int], end: Mapping[int, int]) -> None:
    """An end below its start would read backwards: a topic made anew, or an index restored from a copy."""
    for partition, at in start.items():
        if end.get(partition, at) < at:
            raise ConflictError(
                f"Topic {stream.topic!r}, partition {partition}: job {stream.job!r} has read to offset {at} but the topic "
                f"ends at {end[partition]}; it was made anew or restored, so start the job anew: `penstock reset {stream.job}`."
            )
