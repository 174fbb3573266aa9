"""Runs loops in threads: each step is called when it asked to be, until it is done or all are stopped.

A loop that raises goes on after a pause: what it raised is told once for each new text, so that a disk that is full for
an hour is one sentence and not a thousand.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from penstock.model.errors import PenstockError
from penstock.ports.clock import Clock

PAUSE_SECONDS = 1.0
"""After a step that raised."""


class Loop(Protocol):
    def step(self, now: float) -> float | None:
        """Do one thing; when to wake next, None when there is nothing left to do."""
        ...


class Loops:
    """Threads, one for each loop."""

    def __init__(self, clock: Clock, tell: Callable[[str, str], None]) -> None:
        """`tell`: takes a loop's name and what went wrong in it."""
        self._clock, self._tell = clock, tell
        self._stopped = threading.Event()
        self._threads: list[threading.Thread] = []

    def start(self, name: str, loop: Loop) -> None:
        """Step this loop from now on."""
        thread = threading.Thread(target=self._turn, args=(name, loop), name=f"penstock-{name}", daemon=True)
        self._threads.append(thread)
        thread.start()

    def stop(self, timeout_seconds: float = 10.0) -> None:
        """No step begins any more; waits for those that are under way."""
        self._stopped.set()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join(timeout_seconds)

    def _turn(self, name: str, loop: Loop) -> None:
        told = ""
        while not self._stopped.is_set():
            try:
                wake = loop.step(self._clock.now())
            except Exception as error:  # noqa: BLE001 - a loop must outlive whatever one of its steps meets
                if self._stopped.is_set():
                    return
                text = in_words(error)
                if text != told:
                    told = text
                    with suppress(Exception):  # whoever is told must not end the loop either
                        self._tell(name, text)
                wake = self._clock.now() + PAUSE_SECONDS
            if wake is None:
                return
            self._stopped.wait(max(0.0, wake - self._clock.now()))


def in_words(error: BaseException) -> str:
    """An error's first line; ours as it is, others with their kind."""
    first = next(iter(str(error).strip().splitlines()), "")
    return first if isinstance(error, PenstockError) else f"{type(error).__name__}: {first}"
