"""Remembers, from one run of a project to the next, how many threads each job had.

Rules: it is only a hint, so a file that cannot be read or written is none; a strategy that changes no size begins as
declared. The file lies in the work folder and goes with it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from penstock.core.jobs.first_sizes import Remembered
from penstock.model.jobs import JobSpec
from penstock.ports.actuator import Actuator
from penstock.spark.layout import write_durably

FILE = "sizes.json"
NOTE_SECONDS = 1.0


def read_sizes(work: Path) -> dict[str, Remembered]:
    """Per job what was noted last; empty where nothing can be read."""
    with suppress(OSError, ValueError, TypeError, AttributeError):
        held = json.loads((work / FILE).read_text())
        return {name: Remembered(int(threads), int(declared)) for name, (threads, declared) in held.items()}
    return {}


class SizesKept:
    """A loop: notes the threads of all jobs whenever they change."""

    def __init__(self, work: Path, jobs: Sequence[JobSpec], actuator: Actuator) -> None:
        self._work, self._actuator = work, actuator
        self._declared = {job.name: job.options.threads for job in jobs}
        self._noted: Mapping[str, int] = {}

    def step(self, now: float) -> float:
        """Note what changed; when to wake next."""
        threads = dict(self._actuator.threads())
        if threads != self._noted:
            held = {name: (n, self._declared[name]) for name, n in threads.items() if name in self._declared}
            with suppress(OSError):  # only a hint: it is tried again, and nobody need know
                write_durably(self._work / FILE, json.dumps(held))
                self._noted = threads
        return now + NOTE_SECONDS
