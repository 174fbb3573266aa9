"""Names and ids. A name becomes part of file names, SQL and Spark options, so its alphabet is small."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.model.errors import SpecError

_NAME = re.compile(r"^[a-zA-Z][a-zA-Z0-9_.-]{0,99}\Z")


def check_name(field: str, value: object) -> str:
    """A job's, topic's or service's name, or a `SpecError` that says what may stand in one."""
    if not isinstance(value, str) or not _NAME.match(value):
        raise SpecError(
            field, value, "is not a name", "use a letter, then up to 99 letters, digits, '_', '-' or '.'"
        )
    return value


@dataclass(frozen=True, slots=True, order=True)
class TaskId:
    """The n-th task of a job: `count-0`."""

    job: str
    index: int

    def __str__(self) -> str:
        return f"{self.job}-{self.index}"


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    """One partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


@dataclass(frozen=True, slots=True, order=True)
class Fence:
    """Which run of a task writes: its job's task layout, and the run within it. A sink refuses a lower one."""

    generation: int
    epoch: int

    def __str__(self) -> str:
        return f"generation {self.generation}, epoch {self.epoch}"
