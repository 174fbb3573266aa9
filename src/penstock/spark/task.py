"""A task: one Structured Streaming query that reads its part of a job's partitions, and can change threads at any batch.

Rules: it stops only at a batch's edge (`drain`), or at once (`stop`, which may leave a batch to be replayed). A planner
that is refused by the sink (another run writes now) ends it for good.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import StreamingQueryProgress
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.core.jobs.task_lifecycle import TaskState, next_state
from penstock.model.errors import PenstockError
from penstock.model.ids import TaskId
from penstock.spark.bus import Bus, SinkTask
from penstock.spark.failures import Failure, describe_failure
from penstock.spark.frames import (
    JobCode,
    apply_function,
    input_frames,
    record_frame,
    refusals_in_words,
    reject_to,
)
from penstock.spark.hub import PlannerHub
from penstock.spark.offsets import batch_ends, newest_batch
from penstock.spark.planner import Drained, TaskPlanner
from penstock.spark.session import jvm

_POLL_SECONDS = 0.005


@dataclass(frozen=True)
class TaskPlace:
    """Where a task runs: the hub its streams ask, its session, its checkpoint, its trigger."""

    hub: PlannerHub
    session: SparkSession
    checkpoint: Path
    interval_seconds: float
    available_now: bool = False


class Task:
    """One run of one task; `start` it, set `threads`, then `drain` or `stop` it."""

    def __init__(self, code: JobCode, bus: Bus, planner: TaskPlanner, place: TaskPlace) -> None:
        self.code, self.planner = code, planner
        self.state: TaskState = "new"
        self.failure: Failure | None = None
        self._bus, self._place = bus, place
        self._query: StreamingQuery | None = None
        self._found = -1
        """The newest batch that was committed before this run."""
        self._cut_off = False
        """Its query was stopped, and did not end."""
        self._looking = threading.Lock()

    @property
    def id(self) -> TaskId:
        return self.planner.layout.task

    @property
    def run(self) -> str:
        return self.planner.layout.run

    @property
    def threads(self) -> int:
        return self.planner.threads

    def set_threads(self, threads: int) -> None:
        """Takes effect in the next batch that is planned."""
        self.planner.threads = max(1, threads)

    def start(self, *, frozen: bool = False) -> None:
        """Start the query; a job that cannot even be planned leaves nothing behind. A frozen one finishes the batch that
        its checkpoint holds, and ends."""
        self.planner.frozen = frozen
        self._found = self._committed()
        self.state = next_state(self.state, "start")
        place, context = self._place, self._place.session.sparkContext
        place.hub.register(self.run, self.planner)
        context.setLocalProperty("spark.scheduler.pool", str(self.id))
        try:
            with refusals_in_words(self.code.spec):
                self._query = self._writer().start()
        except BaseException:
            self.state = next_state(self.state, "fail")
            self._close()
            raise
        finally:
            context.setLocalProperty("spark.scheduler.pool", None)  # type: ignore[arg-type]
        if frozen:
            self.state = next_state(self.state, "drain")

    def _writer(self) -> DataStreamWriter:
        session, options = self._place.session, self.code.spec.options
        frames = input_frames(
            session,
            self.code,
            lambda stream, topic: self._bus.read(session, self.planner.reading(stream)),
            lambda stream, topic: reject_to(session, self.run, stream, topic),
        )
        writer = self._sink(apply_function(session, self.code, frames)).outputMode(options.output_mode)
        writer = writer.queryName(self.run).option("checkpointLocation", str(self._place.checkpoint))
        if self._place.available_now:
            return writer.trigger(availableNow=True)
        return writer.trigger(processingTime=f"{round(self._place.interval_seconds * 1000)} milliseconds")

    def _sink(self, made: Mapping[str, DataFrame]) -> DataStreamWriter:
        sink = next((o.sink for o in self.code.spec.outputs if o.sink), None)
        if sink is None:
            outputs = {name: self._partitions(name) for name in self.planner.layout.outputs}
            target = SinkTask(self.run, self.id, outputs, self.planner.commit_write)
            return self._bus.write(record_frame(self.code, made), target)
        if sink.function:
            return made[""].writeStream.foreachBatch(self._call_owner)
        return made[""].writeStream.format(sink.format).options(**dict(sink.options))

    def _call_owner(self, frame: DataFrame, batch_id: int) -> None:
        """The owner's foreachBatch, then the commit that says how far the job has come."""
        assert self.code.foreach is not None
        self.code.foreach(frame, batch_id)
        try:
            self.planner.commit_write(batch_id, [], self._dead_letters().drain(self.run))
        except BaseException as error:
            self.planner.error = error
            raise

    def _dead_letters(self) -> Any:
        return jvm(self._place.session).penstock.DeadLetters

    def _partitions(self, topic: str) -> int:
        return len(self._bus.topics.describe(topic).partitions)

    def look(self) -> TaskState:
        """Notice a query that has ended."""
        with self._looking:
            return self._look()

    def _look(self) -> TaskState:
        query = self._query
        if query is None or query.isActive or self.state not in ("running", "draining"):
            return self.state
        error = _exception(query)
        clean = error is None and self.planner.error is None and self.at_edge()
        if isinstance(self.planner.error, Drained) or (clean and self.state == "draining"):
            self.state = next_state(self.state, "batch_edge") if self.state == "draining" else "stopped"
        elif error is None and self.planner.error is None:
            self.state = next_state(self.state, "stop")
        else:
            self.failure = describe_failure(error, self.planner.error, self.code.folder)
            self.state = next_state(self.state, "refused" if self.failure.fenced else "fail")
        self._close()
        return self.state

    def freeze(self) -> None:
        """Form no more batches; a run that is seen to have ended meanwhile stays as it ended."""
        with self._looking:
            if self.state == "running":
                self.state = next_state(self.state, "drain")
                self.planner.frozen = True

    def drain(self, timeout_seconds: float, wait: Callable[[float], None] = time.sleep) -> bool:
        """Let the batch at hand commit, form no other, then stop; False when that took too long (still draining)."""
        self.freeze()
        deadline = time.monotonic() + timeout_seconds
        while time.monotonic() < deadline:
            if self.look() != "draining":
                return self.ended_clean()
            assert self._query is not None
            if not self._query.status["isTriggerActive"] and self.at_edge():
                self._end_query(self._query)
                self.look()
                return self.ended_clean()
            wait(_POLL_SECONDS)
        return False

    def ended_clean(self) -> bool:
        """It has ended, and left no batch for its next run to do again."""
        return self.state in ("drained", "stopped") and self.at_edge()

    def stopped_inside(self) -> bool:
        """It was stopped, and left a batch for its next run to do again."""
        return self.state in ("drained", "stopped") and not self.at_edge()

    def at_edge(self) -> bool:
        """Every batch that Spark began is committed in its checkpoint, and its thread begins no other."""
        return not self._cut_off and newest_batch(self._place.checkpoint / "offsets") == self._committed()

    def moved(self) -> bool:
        """It has committed a batch."""
        return self._committed() > self._found

    def _committed(self) -> int:
        return newest_batch(self._place.checkpoint / "commits")

    def stop(self) -> None:
        """Stop at once; a batch in flight is replayed at the next start."""
        with self._looking:
            if self._query is not None:
                self._end_query(self._query)
            self.state = next_state(self.state, "stop")
            self._close()

    def close(self) -> None:
        """It is not started after all: what its bus opened for it is let go."""
        if self.state == "new":
            self._close()

    def _end_query(self, query: StreamingQuery) -> None:
        """Spark waits for the query's thread only so long (session.py); one that still works has not come to an edge."""
        try:
            if query.isActive:
                query.stop()
        except Exception:  # noqa: BLE001  its time is over, or the JVM is gone: nothing more can be done from here
            self._cut_off = True

    def _close(self) -> None:
        """Nothing more is asked of its planner, a commit in flight ends, and only then its bus is closed."""
        self._place.hub.forget(self.run)
        self.planner.wait_for_commit()
        if self._query is not None and not self.planner.layout.hooked:
            with suppress(Exception):  # as the JVM or the topics are gone: then progress stays a batch behind
                ends = batch_ends(self._place.checkpoint, self._committed())
                self.planner.settle(ends, self._dead_letters().drain(self.run))
        with suppress(Exception):
            self._bus.close(self.id, self.planner.layout.fence)
        with suppress(Exception):  # the JVM may be gone already
            self._dead_letters().close(self.run)

    def progress(self) -> list[StreamingQueryProgress]:
        """What Spark itself says of the newest batches, oldest first."""
        return [] if self._query is None else list(self._query.recentProgress)


def _exception(query: StreamingQuery) -> BaseException | None:
    try:
        return query.exception()
    except Exception as error:  # noqa: BLE001  the JVM died: py4j raises one of several kinds
        return PenstockError(f"Spark's JVM is gone ({type(error).__name__}).")
