"""What trees of processes use: cores over a stretch of time, and memory in which shared pages count once."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil


@dataclass(frozen=True, slots=True)
class Usage:
    """Of all processes of some trees together."""

    cores: float
    pss_bytes: int
    root_cores: float = 0.0
    """Of the trees' roots alone: the Python drivers."""


def measure_trees(pids: Sequence[int], seconds: float) -> Usage:
    """CPU over so many seconds, memory at their end; what starts or ends meanwhile counts as far as it is seen."""
    before, began = _cpu_seconds(pids), time.monotonic()
    time.sleep(seconds)
    after, passed = _cpu_seconds(pids), time.monotonic() - began
    spent = sum(value - before.get(pid, 0.0) for pid, value in after.items())
    roots = sum(after[pid] - before.get(pid, 0.0) for pid in pids if pid in after)
    return Usage(spent / passed, sum(_pss_bytes(pid) for pid in after), roots / passed)


def _cpu_seconds(pids: Sequence[int]) -> dict[int, float]:
    found: dict[int, float] = {}
    for pid in pids:
        with suppress(psutil.Error):
            root = psutil.Process(pid)
            for process in (root, *root.children(recursive=True)):
                with suppress(psutil.Error):
                    times = process.cpu_times()
                    found[process.pid] = times.user + times.system
    return found


def _pss_bytes(pid: int) -> int:
    """Proportional set size; 0 for a process that is gone."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return 0
