"""Slots and executors of a container: fixed in local mode, coming and going under running queries on a cluster.

Spark's own time-outs are set to a year (session.py), so that nothing changes but by request. The last executor is
never removed; growth goes in steps, since many JVMs starting at once slow each other down.
"""

from __future__ import annotations

import socket
import threading
from functools import cache
from typing import Any, Protocol

import psutil
from pyspark.sql import SparkSession

from penstock.model.errors import ConflictError

STEP = 2
"""Executors asked for at a time."""


class Executors(Protocol):
    def slots(self) -> int: ...
    def count(self) -> int: ...
    def request(self, executors: int) -> None: ...

    def settle(self) -> None:
        """Take the next step towards what was requested."""
        ...

    def elsewhere(self) -> list[str]:
        """Hosts of executors that are not this one."""
        ...


class FixedSlots:
    """Local mode: the driver's own JVM runs everything."""

    def __init__(self, slots: int) -> None:
        self._slots = slots

    def slots(self) -> int:
        return self._slots

    def count(self) -> int:
        return 1

    def request(self, executors: int) -> None:
        if executors != 1:
            raise ConflictError(
                f"executors = {executors} cannot be had in a container that runs in one JVM; "
                "use the cluster profile, or more slots."
            )

    def settle(self) -> None:
        """There is nothing to wait for."""

    def elsewhere(self) -> list[str]:
        return []


class ElasticExecutors:
    """A Spark master's executors: asked for one step at a time, let go by decommissioning."""

    def __init__(self, session: SparkSession, slots_each: int, least: int = 1, most: int = 1000) -> None:
        self._scala: Any = session.sparkContext._jsc.sc()
        self._machine: Any = session.sparkContext._jvm
        self._each, self._least, self._most = slots_each, max(1, least), most
        self._wanted = self._least
        self._lock = threading.Lock()

    def ids(self) -> list[str]:
        """Executors that are registered and not leaving, oldest first."""
        held = self._scala.getExecutorIds()
        found = [held.apply(i) for i in range(held.size())]
        return sorted(found, key=int)

    def count(self) -> int:
        return len(self.ids())

    def slots(self) -> int:
        return self.count() * self._each

    def request(self, executors: int) -> None:
        """Set how many there should be; `settle` takes the next step towards it."""
        self._wanted = min(self._most, max(self._least, executors))
        self.settle()

    def settle(self) -> None:
        """One step towards what is wanted: ask for a few more, or let the youngest go."""
        with self._lock:
            ids = self.ids()
            if len(ids) < self._wanted:
                step = min(self._wanted, len(ids) + STEP)
                empty = self._machine.PythonUtils.toScalaMap(self._machine.java.util.HashMap())
                self._scala.requestTotalExecutors(step, 0, empty)
            for id_ in ids[self._wanted :][::-1]:
                self._decommission(id_)

    def elsewhere(self) -> list[str]:
        infos = self._scala.statusTracker().getExecutorInfos()
        return sorted({info.host() for info in infos} - _own_names())

    def _decommission(self, id_: str) -> None:
        info = self._machine.org.apache.spark.scheduler.ExecutorDecommissionInfo(
            "penstock: fewer slots are needed", self._machine.scala.Option.empty()
        )
        self._scala.schedulerBackend().decommissionExecutor(id_, info, True, False)


def _own_names() -> set[str]:
    """Names and addresses by which this host may be called."""
    addresses = {a.address for held in psutil.net_if_addrs().values() for a in held}
    return addresses | {"localhost", "127.0.0.1", socket.gethostname(), _full_name()}


@cache
def _full_name() -> str:
    """Asked for once: a slow resolver would hold up whoever tends the tasks, each second."""
    return socket.getfqdn()
