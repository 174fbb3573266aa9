"""kill -9 of the whole container, at random moments and at chosen steps, often in a row: the output is exact."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.model.records import Record

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

CHILD = Path(__file__).parent.parent / "children" / "crashing.py"
RECORDS = 24_000
POINTS = ("commit.locked", "commit.admitted", "commit.placed", "commit.recorded", "commit.committed")
ROUNDS = 20


def run_until(folder: Path, delay_seconds: float | None, point: str = "") -> list[str]:
    """Start the container; kill its whole process group so long after READY, or let it end."""
    command = [sys.executable, str(CHILD), str(folder), *([point] if point else [])]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    lines: list[str] = []
    ready = threading.Event()

    def read() -> None:
        assert child.stdout is not None
        for line in child.stdout:
            lines.append(line.rstrip())
            if line.startswith("READY"):
                ready.set()
        ready.set()

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    try:
        assert ready.wait(120), lines
        if delay_seconds is not None:
            with suppress(subprocess.TimeoutExpired):
                child.wait(delay_seconds)
        else:
            child.wait(180)
    finally:
        with_group_killed(child)
    reader.join(10)
    return lines


def with_group_killed(child: subprocess.Popen[str]) -> None:
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait(30)


def latest(log: EmbeddedLog, topic: str) -> dict[int, int]:
    table: dict[int, int] = {}
    for info in log.describe(topic).partitions:
        for stored in log.read(info.place, 0, 1_000_000):
            row = json.loads(stored.record.value or b"")
            assert row["n"] > table.get(row["k"], 0), (
                f"{topic}: a count went back or was written twice: {row}"
            )
            table[row["k"]] = row["n"]
    return table


def test_killed_twenty_times_the_output_is_exact(tmp_path: Path) -> None:
    seed = int(os.environ.get("PENSTOCK_SEED", time.time_ns() % 1_000_000))
    rng = random.Random(seed)
    print(f"seed {seed}")
    log = EmbeddedLog(tmp_path / "log", durable=False)
    log.create("in", 4)
    log.append("in", [Record(None, json.dumps({"id": i}).encode(), i) for i in range(RECORDS)])
    told: list[str] = []
    for round_ in range(ROUNDS):
        if round_ % 2:
            point = f"{POINTS[(round_ // 2) % len(POINTS)]}:{rng.randint(1, 12)}"
            lines = run_until(tmp_path, 8.0, point)
        else:
            lines = run_until(tmp_path, rng.choice([0.0, rng.uniform(0, 2.5)]))
        told += [line for line in lines if line.startswith(("FAILED", "FENCED", "Traceback"))]
        if "DONE" in lines:
            break
    lines = run_until(tmp_path, None)
    assert "DONE" in lines, lines[-20:]
    assert not told, (seed, told[:5])
    copied = Counter(
        json.loads(stored.record.value or b"")["id"]
        for info in log.describe("copied").partitions
        for stored in log.read(info.place, 0, 1_000_000)
    )
    assert copied == Counter(range(RECORDS)), seed
    assert latest(log, "counted") == Counter(i % 7 for i in range(RECORDS)), seed
    assert sum(latest(log, "drawn").values()) == RECORDS, seed
    assert not list((tmp_path / "checkpoints").rglob("*.tmp"))
    log.close()
