"""The Python worker daemon: imports what every worker needs once, before it forks, and lets workers say what they waited.

New threads then start fast, and their workers share the memory of these imports. Where a container has more slots
than cores, a worker's wait for a core is no useful time: it is left in a file of its Spark task, which the executor
reads when the task ends. Started by Spark (`spark.python.daemon.module`), never imported by us.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy  # noqa: F401  imported for the workers
import pandas  # noqa: F401
import pyarrow
import pyarrow.compute  # noqa: F401
import pyspark.sql.pandas.serializers
import pyspark.worker
from pyspark import TaskContext
from pyspark.daemon import manager

WAITS = os.environ.get("PENSTOCK_WAITS", "")
"""Folder of the files that say what workers waited; empty: none is written."""


def _queue_ns() -> int:
    """Time that this process has waited for a core, so far."""
    try:
        with open("/proc/self/schedstat") as held:
            return int(held.read().split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def _note_waits() -> None:
    """Measure around the part of a worker in which the owner's code runs."""
    capture = pyspark.worker.capture_outputs

    @contextmanager
    def measured() -> Iterator[None]:
        context = TaskContext.get()
        before = _queue_ns()
        with capture():
            yield
        waited = _queue_ns() - before
        if context is not None and waited > 0:
            # A full disk must not fail the owner's work.
            with suppress(OSError), open(f"{WAITS}/{context.taskAttemptId()}", "a") as out:
                out.write(f"{waited}\n")

    pyspark.worker.capture_outputs = measured


if WAITS:
    _note_waits()
gc.freeze()

if __name__ == "__main__":
    manager()
