"""A small world for trials, in the child's process: a Spark session, an embedded log, a host, jobs declared in place.

`Managing` is what a run adds to them: the loops that measure, decide, heal and report, stepped as `penstock run` does.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.adapters.files.journal import FileJournal
from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.upkeep import UpkeepSettings
from penstock.authoring.registry import collecting
from penstock.control.autoscaler import Autoscaler
from penstock.control.reporting import Reporter, Tender
from penstock.core.controller.strategy import strategy_named
from penstock.model.jobs import PipelineSpec
from penstock.model.records import Record
from penstock.spark.bus import Bus, LogBus
from penstock.spark.executors import FixedSlots
from penstock.spark.frames import JobCode
from penstock.spark.host import Host
from penstock.spark.session import ContainerSettings, start_session

PROGRESS_KEPT = "5000"
APPENDED = 20_000
WAIT_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class TrialSettings:
    """What differs between trials."""

    slots: int = 2
    heap: str = "1g"
    durable: bool = True
    """As a project's embedded log is by default: every commit reaches the disk."""
    jars: tuple[Path, ...] = ()
    conf: Mapping[str, str] = field(default_factory=dict[str, str])


class TrialContainer:
    """Session, log and host in one folder."""

    def __init__(self, work: Path, settings: TrialSettings) -> None:
        conf = {"spark.sql.streaming.numRecentProgressUpdates": PROGRESS_KEPT, **settings.conf}
        self.session = start_session(
            ContainerSettings(
                work=work / "spark",
                slots=settings.slots,
                heap=settings.heap,
                jars=settings.jars,
                conf=conf,
            )
        )
        self.work = work
        released = UpkeepSettings(grace_seconds=0.0)
        self.log = EmbeddedLog(work / "log", durable=settings.durable, upkeep=released)
        self.bus = LogBus(self.log, sync=settings.durable)
        self.host = Host(self.session, work / "checkpoints", FixedSlots(settings.slots))

    @property
    def probe(self) -> Any:
        """The JVM's probe."""
        machine: Any = self.session.sparkContext._jvm  # pyright: ignore
        return machine.penstock.Probe

    def declare(self, declaring: Callable[[], object]) -> list[JobCode]:
        """Jobs that a function declares, as a pipeline file would."""
        with collecting() as registry:
            declaring()
        topics = {t.name: t for t in registry.topics}
        return [JobCode(e.spec, topics, e.function, e.foreach, "") for e in registry.jobs]

    def fill(self, topic: str, count: int, value: bytes) -> None:
        """Give a topic records, all alike but for their number."""
        for start in range(0, count, APPENDED):
            numbers = range(start, min(count, start + APPENDED))
            self.bus.topics.append(topic, [Record(None, b"%d %s" % (n, value), 0) for n in numbers])

    def drop(self, codes: Sequence[JobCode]) -> None:
        """End these jobs at a batch's edge and forget them."""
        names = [code.spec.name for code in codes]
        self.host.drain(30.0, names)
        for name in names:
            self.host.remove(name)


class Managing:
    """The loops of a run over jobs in a trial's host, in a thread; use it as a context manager."""

    def __init__(
        self, trial: TrialContainer, codes: Sequence[JobCode], bus: Bus, *, available_now: bool = True
    ) -> None:
        topics = {name: topic for code in codes for name, topic in code.topics.items()}
        spec = PipelineSpec(
            name=codes[0].spec.name, topics=tuple(topics.values()), jobs=tuple(c.spec for c in codes)
        )
        self._trial, self._codes, self._bus, self._available_now = trial, codes, bus, available_now
        self._journal = FileJournal(trial.work / "runs", spec.name)
        self._autoscaler = Autoscaler(spec, strategy_named("penstock"), trial.host, self._journal)
        tender = Tender(trial.host, self._journal)
        reporter = Reporter(spec, trial.host, self._autoscaler, tender, self._journal)
        self._loops = [self._autoscaler, tender, reporter]
        self._ended = threading.Event()
        self._threads = [threading.Thread(target=self._turn, args=(x,), daemon=True) for x in self._loops]

    def __enter__(self) -> Managing:
        for code in self._codes:
            self._trial.host.add(code, self._bus, available_now=self._available_now)
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        for thread in self._threads:
            thread.join(10.0)
        self._journal.close()

    def _turn(self, loop: Any) -> None:
        while not self._ended.is_set():
            wake = time.time() + 1.0
            with suppress(Exception):  # a loop outlives what one step meets, as in a run
                wake = loop.step(time.time())
            self._ended.wait(max(0.0, wake - time.time()))


def wait_until(holds: Callable[[], bool], what: str, seconds: float = WAIT_SECONDS) -> None:
    """Look until it holds; says what was waited for when it takes too long."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds:.0f} s for {what}")
        time.sleep(0.01)
