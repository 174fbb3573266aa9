"""A run's journal: statuses, decisions and events in the order they came, for explanations and reports later."""

from __future__ import annotations

from typing import Protocol

from penstock.model.decisions import Decision
from penstock.model.observations import BatchSample, ContainerSample
from penstock.model.status import RunEvent, RunHeader, RunHistory, RunStatus

Entry = RunHeader | RunStatus | Decision | RunEvent | BatchSample | ContainerSample


class Journal(Protocol):
    def write(self, entry: Entry) -> None:
        """Kept at once; a crash loses the entry at hand at most."""
        ...


class Runs(Protocol):
    def runs(self) -> list[RunHeader]:
        """Newest first."""
        ...

    def history(self, run: str | None = None) -> RunHistory:
        """One run's, the newest when none is named; MissingError says which there are."""
        ...

    def last_status(self, run: str) -> RunStatus | None:
        """How a run stood last, without reading all of it; None before its first status."""
        ...

    def follow(self, run: str | None = None, after: int = 0) -> tuple[list[Entry], int]:
        """Entries of a run past a position, and the position to ask from next."""
        ...
