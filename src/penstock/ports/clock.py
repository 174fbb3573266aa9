"""The only source of time for loops: real in `app`, virtual in `sim` and tests."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since 1970."""
        ...
