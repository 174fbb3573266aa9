"""A container as loops see it: what it measures, what may be changed in it, and how its jobs fare."""

from __future__ import annotations

from typing import Protocol

from penstock.model.status import JobState, RunEvent
from penstock.ports.actuator import Actuator
from penstock.ports.measurements import Measurements


class Container(Measurements, Actuator, Protocol):
    def tick(self, now: float) -> list[RunEvent]:
        """Notice ended tasks, start those whose pause is over; what happened."""
        ...

    def state(self, job: str) -> JobState: ...

    def counts(self, job: str) -> tuple[int, int, int]:
        """(batches, dead letters, restarts) since the start."""
        ...

    def drain(self, timeout_seconds: float) -> bool:
        """Every task to a clean batch edge; False when some had to be stopped in the middle."""
        ...

    def stop(self) -> None:
        """All tasks at once."""
        ...
