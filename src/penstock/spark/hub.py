"""The one Python object that the JVM asks: passes each question to the planner of its task.

Never calls into Spark. An exception is kept whole at its planner, since Spark's own message wraps it in a plan dump.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from penstock.model.errors import PenstockError
from penstock.model.ids import Fence, TaskId


class BatchPlanner(Protocol):
    """What a task decides for its query; streams are numbered in the order the job reads them."""

    error: BaseException | None

    def initial_offset(self, stream: int) -> str: ...
    def latest_offset(self, stream: int, start: str) -> str: ...
    def plan(self, stream: int, start: str, end: str) -> str: ...
    def commit_read(self, stream: int, end: str, dead_letters: str) -> None: ...
    def prepare_available_now(self, stream: int) -> None: ...
    def commit_write(self, batch_id: int, messages: list[str], dead_letters: str) -> None: ...
    def abort_write(self, batch_id: int, messages: list[str]) -> None: ...


def run_name(task: TaskId | str, fence: Fence) -> str:
    """How a task's run is named to Spark and to Kafka."""
    return f"{task}@{fence.generation}.{fence.epoch}"


def stream_name(run: str, stream: int) -> str:
    """How a stream of a task's run is named to Spark."""
    return f"{run}#{stream}"


class PlannerHub:
    """Planners by the name of their task's run."""

    class Java:
        implements = ("penstock.Planner",)

    def __init__(self) -> None:
        self._planners: dict[str, BatchPlanner] = {}

    def register(self, run: str, planner: BatchPlanner) -> None:
        self._planners[run] = planner

    def planner(self, run: str) -> BatchPlanner | None:
        """The planner of a run that is here."""
        return self._planners.get(run)

    def forget(self, run: str) -> None:
        self._planners.pop(run, None)

    def _ask(self, run: str, question: Callable[[BatchPlanner], Any]) -> Any:
        planner = self._planners.get(run)
        if planner is None:
            raise PenstockError(f"The task run {run!r} has ended here; its query is stopping.")
        try:
            return question(planner)
        except BaseException as error:
            if planner.error is None:
                planner.error = error
            raise

    def _ask_stream(self, name: str, question: Callable[[BatchPlanner, int], Any]) -> Any:
        run, _, stream = name.rpartition("#")
        return self._ask(run, lambda planner: question(planner, int(stream)))

    # The names below are the Java interface's.
    def initialOffset(self, stream: str) -> str:  # noqa: N802
        return self._ask_stream(stream, lambda p, s: p.initial_offset(s))

    def latestOffset(self, stream: str, start: str) -> str:  # noqa: N802
        return self._ask_stream(stream, lambda p, s: p.latest_offset(s, start))

    def plan(self, stream: str, start: str, end: str) -> str:
        return self._ask_stream(stream, lambda p, s: p.plan(s, start, end))

    def commitRead(self, stream: str, end: str, dead_letters: str) -> None:  # noqa: N802
        self._ask_stream(stream, lambda p, s: p.commit_read(s, end, dead_letters))

    def prepareAvailableNow(self, stream: str) -> None:  # noqa: N802
        self._ask_stream(stream, lambda p, s: p.prepare_available_now(s))

    def commitWrite(self, sink: str, batch_id: int, messages: Any, dead_letters: str) -> None:  # noqa: N802
        self._ask(sink, lambda p: p.commit_write(int(batch_id), list(messages), dead_letters))

    def abortWrite(self, sink: str, batch_id: int, messages: Any) -> None:  # noqa: N802
        self._ask(sink, lambda p: p.abort_write(int(batch_id), list(messages)))
