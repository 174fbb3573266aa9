"""The real clock: the only one that is not virtual."""

from __future__ import annotations

import time


class SystemClock:
    """`ports.clock.Clock` of this host."""

    def now(self) -> float:
        return time.time()
