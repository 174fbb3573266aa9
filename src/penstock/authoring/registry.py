"""Where declarations land while one pipeline file loads, and where in the owner's code they stand.

The registry belongs to a load: it is set by the loader for the time the file runs. A file that is imported by
hand (by a test, say) declares into nothing and works as plain Python.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from penstock.model.jobs import JobSpec
from penstock.model.topics import TopicSpec

JobFunction = Callable[..., Any]
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


@dataclass(frozen=True, slots=True)
class JobEntry:
    """One declared job: its spec, the callable that takes its frames in order, and its foreachBatch, where it
    has them.
    """

    spec: JobSpec
    function: JobFunction | None = None
    foreach: JobFunction | None = None
    topics: tuple[TopicSpec, ...] = ()
    """Topics that it was given as objects: they count as declared, wherever they were made."""


@dataclass(slots=True)
class Registry:
    """What one load declared, in the order declared."""

    topics: list[TopicSpec] = field(default_factory=list[TopicSpec])
    jobs: list[JobEntry] = field(default_factory=list[JobEntry])


_current: ContextVar[Registry | None] = ContextVar("penstock_registry", default=None)


@contextmanager
def collecting() -> Generator[Registry]:
    """A fresh registry for everything declared inside."""
    registry = Registry()
    token = _current.set(registry)
    try:
        yield registry
    finally:
        _current.reset(token)


def declare_topic(spec: TopicSpec) -> None:
    if (registry := _current.get()) is not None:
        registry.topics.append(spec)


def declare_job(entry: JobEntry) -> None:
    if (registry := _current.get()) is not None:
        registry.jobs.append(entry)


def caller_place() -> str:
    """`file:line` of the nearest caller outside this package."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_HERE):
        frame = frame.f_back
    return format_place(frame.f_code.co_filename, frame.f_lineno)


def format_place(file: str, line: int) -> str:
    """`file:line`, relative to the working folder where the file is inside it."""
    path = os.path.abspath(file)
    inside = os.path.join(os.getcwd(), "")
    return f"{path.removeprefix(inside)}:{line}"
