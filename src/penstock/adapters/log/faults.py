"""The named steps at which a test may crash, fill the disk or stop the clock of the log.

The log calls its `faults` hook with one of `POINTS` at each of these steps; in production the hook does nothing. A
hook that raises must leave the log as if the operation had not begun, a hook that ends the process likewise, save
for files that no commit names (orphans) and for what stands after `*.committed`.
"""

from __future__ import annotations

from collections.abc import Callable

Faults = Callable[[str], None]

WRITE_POINTS = ("segment.created", "segment.chunk_written", "segment.synced")
"""While a segment file is written by value."""
COMMIT_POINTS = ("commit.locked", "commit.admitted", "commit.placed", "commit.recorded", "commit.committed")
"""Inside and right after the transaction of a micro-batch."""
APPEND_POINTS = ("append.locked", "append.placed", "append.committed")
MERGE_POINTS = ("merge.written", "merge.replaced", "merge.committed")
RETAIN_POINTS = ("retain.dropped", "retain.committed")
SWEEP_POINTS = ("sweep.locked", "sweep.deleted", "sweep.committed")
POINTS = (*WRITE_POINTS, *COMMIT_POINTS, *APPEND_POINTS, *MERGE_POINTS, *RETAIN_POINTS, *SWEEP_POINTS)


def no_faults(point: str) -> None:
    """The hook in production: nothing happens at any point."""
