"""The log's housework, a bounded piece at a time: sweep, retain, merge, look for orphans.

`step` does a little of each and says when to be called next; any loop may drive it, in one process or in several at
once. What frees space comes before what needs some, so that a full disk can mend itself.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from penstock.adapters.log.merging import Merger
from penstock.adapters.log.retaining import Retainer
from penstock.adapters.log.store import Store
from penstock.adapters.log.sweeping import Sweeper


@dataclass(frozen=True, slots=True)
class UpkeepSettings:
    """How much housework is done, and how soon."""

    merge_target_bytes: int = 8 << 20
    """A merged chunk grows to this size: large enough to read fast, small enough to be read for a few records."""
    merge_step_bytes: int = 32 << 20
    """About how much one step writes again."""
    grace_seconds: float = 600.0
    """How long a file stays after the index let go of it; longer than any micro-batch that may be reading it."""
    orphan_age_seconds: float = 6 * 3600.0
    """A file that no commit names is deleted when nobody wrote to it for so long; longer than any micro-batch."""
    retention_seconds: float = 30.0
    """How often retention goes round."""
    orphan_seconds: float = 600.0
    """How often the search for orphans goes round."""
    idle_seconds: float = 5.0
    """When to look again after a step that found nothing left to do."""


@dataclass(frozen=True, slots=True)
class Upkept:
    """What one step did."""

    wake_at: float
    """When to call again, in seconds since 1970."""
    merged_chunks: int = 0
    dropped_records: int = 0
    deleted_files: int = 0
    problems: tuple[str, ...] = ()
    """Sentences about files that could not be read."""


@dataclass(slots=True)
class Upkeep:
    """Drives the workers of one open log; safe to call from several threads."""

    store: Store
    settings: UpkeepSettings = field(default_factory=UpkeepSettings)
    _merger: Merger = field(init=False)
    _retainer: Retainer = field(init=False)
    _sweeper: Sweeper = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)
    _retained_at: float = field(init=False, default=float("-inf"))
    _searched_at: float = field(init=False, default=float("-inf"))

    def __post_init__(self) -> None:
        self._merger = Merger(self.store, self.settings.merge_target_bytes)
        self._retainer = Retainer(self.store)
        self._sweeper = Sweeper(self.store)

    def step(self) -> Upkept:
        """A little of everything."""
        with self._lock:
            now = self.store.clock()
            deleted = self._sweeper.sweep_released(self.settings.grace_seconds)
            dropped = self._retain(now)
            deleted += self._sweep_orphans(now)
            merged = self._merger.step(self.settings.merge_step_bytes)
            more = merged.more or self._retainer.more or self._sweeper.more
            return Upkept(
                wake_at=now if more else now + self.settings.idle_seconds,
                merged_chunks=merged.chunks,
                dropped_records=dropped,
                deleted_files=deleted,
                problems=tuple(merged.problems),
            )

    def close(self) -> None:
        """Let go of the folder."""
        with self._lock:
            self._sweeper.close()

    def _retain(self, now: float) -> int:
        if not self._retainer.more and _is_due(now, self._retained_at, self.settings.retention_seconds):
            self._retainer.begin()
            self._retained_at = now
        return self._retainer.step()

    def _sweep_orphans(self, now: float) -> int:
        if not self._sweeper.more and _is_due(now, self._searched_at, self.settings.orphan_seconds):
            self._sweeper.begin_orphans()
            self._searched_at = now
        return self._sweeper.sweep_orphans(self.settings.orphan_age_seconds)


def _is_due(now: float, last: float, every_seconds: float) -> bool:
    return not last <= now < last + every_seconds  # also when the clock was set back
