"""A task's life as a table, and how long a failed one waits before it runs again.

Everything that may change a task's state is a row here; a pair that is not in the table is refused.
"""

from __future__ import annotations

from typing import Literal

from penstock.model.errors import ConflictError

TaskState = Literal["new", "running", "draining", "drained", "failed", "fenced", "stopped"]
TaskEvent = Literal["start", "drain", "batch_edge", "fail", "refused", "stop"]

TRANSITIONS: dict[tuple[TaskState, TaskEvent], TaskState] = {
    ("new", "start"): "running",
    ("running", "drain"): "draining",
    ("draining", "batch_edge"): "drained",
    ("running", "fail"): "failed",
    ("draining", "fail"): "failed",
    ("running", "refused"): "fenced",
    ("draining", "refused"): "fenced",
    ("failed", "start"): "running",
    ("drained", "start"): "running",
    ("stopped", "start"): "running",
    ("new", "stop"): "stopped",
    ("running", "stop"): "stopped",
    ("draining", "stop"): "stopped",
    ("drained", "stop"): "stopped",
    ("failed", "stop"): "stopped",
    ("fenced", "stop"): "stopped",
    ("stopped", "stop"): "stopped",
}
"""`fenced` has no way back to running: another run of the task writes now."""

BACKOFF_FIRST_SECONDS = 1.0
BACKOFF_MOST_SECONDS = 60.0


def next_state(state: TaskState, event: TaskEvent) -> TaskState:
    """The state after an event; a pair outside the table is a `ConflictError`."""
    try:
        return TRANSITIONS[state, event]
    except KeyError:
        raise ConflictError(f"A task that is {state} cannot take {event!r}; nothing was done.") from None


def backoff_seconds(failures: int) -> float:
    """Seconds to wait after the n-th failure in a row: 1, 2, 4 … at most 60."""
    if failures < 1:
        return 0.0
    doublings = min(failures - 1, 60)  # far above the most, far below what a float can hold
    return min(BACKOFF_MOST_SECONDS, BACKOFF_FIRST_SECONDS * 2.0**doublings)
