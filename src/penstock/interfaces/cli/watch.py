"""Watches a run until it ends, its time is over, or the user has had enough.

Ctrl-C (or SIGTERM, or a terminal that is closed) once drains: every task comes to a clean batch edge. Twice stops at
once. The signals are taken over for that time, since Spark's own handler would cancel the very batches that should
finish.
"""

from __future__ import annotations

import signal
import threading
from contextlib import suppress
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any, Self

from penstock.interfaces.cli.views import View
from penstock.model.status import RunStatus
from penstock.ports.services import Run

LOOK_SECONDS = 0.5
DRAIN_SECONDS = 60.0
_OVER = ("ended", "failed")
AT_ONCE = "Stopped at once: batches in flight are done again at the next start."
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupts:
    """Counts what the user sent, and wakes whoever waits. Only in a process's main thread may signals be taken."""

    def __init__(self) -> None:
        self.count = 0
        self._woken = threading.Event()
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        self.take_over()
        return self

    def take_over(self) -> None:
        """Signals come here from now on; again after Spark's start, which takes them for itself."""
        if threading.current_thread() is threading.main_thread():
            taken = {number: signal.signal(number, self._take) for number in _SIGNALS}
            self._before = self._before or taken

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def wait(self, seconds: float) -> None:
        """Until something comes, that long at most."""
        self._woken.wait(seconds)
        self._woken.clear()

    def _take(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        self._woken.set()


def watch(run: Run, view: View, for_seconds: float | None, interrupts: Interrupts) -> tuple[RunStatus, str]:
    """Show the run until it is over; its last status, and a sentence when its end was not clean."""
    while True:
        status = run.status()
        _show(view, status)
        if status.phase in _OVER:
            return status, ""
        passed = status.at - run.header.started_at
        if interrupts.count or (for_seconds is not None and passed >= for_seconds):
            return _drain(run, view, interrupts)
        left = LOOK_SECONDS if for_seconds is None else min(LOOK_SECONDS, for_seconds - passed)
        interrupts.wait(max(0.05, left))


def _show(view: View, status: RunStatus) -> None:
    """A terminal that is gone is no reason to leave a batch half done."""
    with suppress(OSError):
        view.show(status)


def _cut_short(status: RunStatus) -> RunStatus:
    """What did not come to a clean edge was stopped."""
    jobs = tuple(j if j.state == "drained" else replace(j, state="stopped") for j in status.jobs)
    return replace(status, jobs=jobs, phase="ended", message=AT_ONCE)


def _drain(run: Run, view: View, interrupts: Interrupts) -> tuple[RunStatus, str]:
    stop_at = interrupts.count + 1
    outcome: list[bool | BaseException] = []

    def work() -> None:
        try:
            outcome.append(run.drain(DRAIN_SECONDS))
        except BaseException as error:  # noqa: BLE001 - raised again where the user is
            outcome.append(error)

    again = " again" if interrupts.count else ""
    with suppress(OSError):
        view.say(f"draining: tasks finish their batch; Ctrl-C{again} stops at once")
    thread = threading.Thread(target=work, name="drain", daemon=True)
    thread.start()
    while thread.is_alive():
        _show(view, run.status())
        if interrupts.count >= stop_at:
            return _cut_short(run.status()), AT_ONCE
        thread.join(LOOK_SECONDS / 5)
    result = outcome[0]
    if isinstance(result, BaseException):
        raise result
    status = run.status()
    _show(view, status)
    clean = "" if result else "Some tasks were stopped inside a batch; it is done again at the next start."
    return status, clean
