"""A second executor, come by request or by Spark's dynamic allocation: how long until it is there, and until it works.

Both run on the same cluster with executors of the same size and the same waiting work: short Python tasks, more than
one executor can take.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from penstock.spark.executors import ElasticExecutors
from penstock.spark.session import ContainerSettings, start_session

HEAP = "512m"
TASK_SECONDS = 0.2
TASKS = 400
WAIT_SECONDS = 90.0


def _work(session: SparkSession, group: str, tasks: int) -> None:
    """Tasks that take a while; ends quietly when they are cancelled."""
    context = session.sparkContext
    context.setJobGroup(group, group, interruptOnCancel=True)
    with suppress(Exception):
        context.parallelize(range(tasks), tasks).foreach(lambda _: time.sleep(TASK_SECONDS))


class _Watched:
    """Looks at a session's executors."""

    def __init__(self, session: SparkSession) -> None:
        self.session = session
        self._rounds = 0

    def _infos(self) -> list[Any]:
        """Of executors, and of the driver, which stands among them and never runs a task."""
        context: Any = self.session.sparkContext
        return list(context._jsc.sc().statusTracker().getExecutorInfos())

    def _ids(self) -> set[str]:
        context: Any = self.session.sparkContext
        held = context._jsc.sc().getExecutorIds()
        return {held.apply(i) for i in range(held.size())}

    def _start_work(self) -> str:
        self._rounds += 1
        group = f"work-{self._rounds}"
        thread = threading.Thread(target=_work, args=(self.session, group, TASKS), daemon=True)
        thread.start()
        return group

    def _await_second(self, began: float, known: set[Any]) -> tuple[float, float]:
        """(seconds until there are two, until one that was not there before runs a task)."""
        registered = 0.0
        until = time.monotonic() + WAIT_SECONDS
        while time.monotonic() < until:
            if not registered and len(self._ids()) >= 2:
                registered = time.monotonic() - began
            working = [i for i in self._infos() if i.port() not in known and i.numRunningTasks() > 0]
            if registered and working:
                return registered, time.monotonic() - began
            time.sleep(0.01)
        raise TimeoutError(f"no second executor worked within {WAIT_SECONDS:.0f} s")

    def _await_one(self) -> None:
        until = time.monotonic() + WAIT_SECONDS
        while len(self._ids()) != 1 or len(self._infos()) != 2:
            if time.monotonic() > until:
                raise TimeoutError(f"the second executor did not go within {WAIT_SECONDS:.0f} s")
            time.sleep(0.05)


class Requested(_Watched):
    """Ours: asked for while work waits."""

    def __init__(self, work: Path, master: str, slots: int) -> None:
        settings = ContainerSettings(work, master, heap=HEAP, executor_slots=slots)
        super().__init__(start_session(settings))
        self._executors = ElasticExecutors(self.session, slots, 1, 2)
        self._await_one()

    def grow(self) -> tuple[float, float]:
        group = self._start_work()
        time.sleep(1.0)  # the first executor is at work
        known = {info.port() for info in self._infos()}
        began = time.monotonic()
        self._executors.request(2)
        found = self._await_second(began, known)
        self.session.sparkContext.cancelJobGroup(group)
        return found

    def shrink(self) -> None:
        self._executors.request(1)
        self._await_one()


class Allocated(_Watched):
    """Spark's: it sees the work that waits."""

    def __init__(self, work: Path, master: str, slots: int) -> None:
        conf = {
            "spark.dynamicAllocation.enabled": "true",
            "spark.dynamicAllocation.shuffleTracking.enabled": "true",
            "spark.dynamicAllocation.minExecutors": "1",
            "spark.dynamicAllocation.maxExecutors": "2",
            "spark.dynamicAllocation.executorIdleTimeout": "3s",
            "spark.executor.cores": str(slots),
            "spark.executor.memory": HEAP,
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.ui.enabled": "false",
            "spark.local.dir": str(work),
        }
        builder = SparkSession.builder.master(master).appName("allocation")
        for name, value in conf.items():
            builder = builder.config(name, value)
        super().__init__(builder.getOrCreate())
        self._await_one()
        _work(self.session, "warm", slots)

    def grow(self) -> tuple[float, float]:
        known = {info.port() for info in self._infos()}
        began = time.monotonic()
        group = self._start_work()
        found = self._await_second(began, known)
        self.session.sparkContext.cancelJobGroup(group)
        return found

    def shrink(self) -> None:
        self._await_one()
