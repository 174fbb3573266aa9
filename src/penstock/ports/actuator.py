"""What a decision may change: threads of a job at its next batch, executors of the container."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol


class Actuator(Protocol):
    def threads(self) -> Mapping[str, int]:
        """Threads now, per job, over all its tasks."""
        ...

    def slots(self) -> int: ...

    def executors(self) -> int: ...

    def set_threads(self, job: str, threads: int) -> None:
        """From each task's next batch on."""
        ...

    def set_executors(self, executors: int) -> None:
        """Asks for them; they come or go in their own time."""
        ...
