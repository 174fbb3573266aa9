"""A hundred small streams in one container: cores, memory, batch time; beside plain applications of one stream each.

Ours: 100 jobs, each from a topic of its own to a topic of its own, 10 rows a second each, a trigger of 5 s that the host
staggers, managed as in a run; the rows are made in the same process and count too. The peers are real applications with
Spark's defaults, two of them, measured and multiplied to 20. What 100 would take is five times as much.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from penstock.bench.children import Progress, end_child, run_child
from penstock.bench.processes import Usage, measure_trees
from penstock.bench.rows import Goal, compare

STREAMS = 100
APPS, APPS_MEANT = 2, 20
SECONDS, QUICK_SECONDS = 60, 10
SETTLE_SECONDS, QUICK_SETTLE_SECONDS = 25, 10
LEAST_BATCHES = 2
"""Of each application before it is measured."""
INTERVAL_SECONDS, RATE = 5, 10
GIB = 1 << 30
LIMITS = {"memory": 1.5, "cores": 1.0, "median batch": 150.0}
UNITS = {"memory": "GiB", "cores": "cores", "median batch": "ms"}


class StreamsBench:
    """`penstock bench spark --only streams`."""

    name = "streams"
    describe = f"{STREAMS} small streams in one container, beside plain applications of one stream each"

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]:
        seconds, settle = (QUICK_SECONDS, QUICK_SETTLE_SECONDS) if quick else (SECONDS, SETTLE_SECONDS)
        with TemporaryDirectory(prefix="penstock-bench-") as name:
            folder = Path(name)
            ours = run_child("streams", folder / "ours", {"seconds": seconds, "settle": settle}, progress)
            progress(f"starting {APPS} plain applications")
            usage, batch = run_apps(folder, seconds, settle)
        return rows_of(ours, usage, batch)


def rows_of(ours: Mapping[str, float], apps: Usage, batch_seconds: float) -> list[Mapping[str, object]]:
    """Each number beside its limit, then beside the applications."""
    found = {
        "memory": ours["pss_bytes"] / GIB,
        "cores": ours["cores"],
        "median batch": ours["batch_seconds"] * 1000,
    }
    times = APPS_MEANT / APPS
    peers = {
        "memory": apps.pss_bytes * times / GIB,
        "cores": apps.cores * times,
        "median batch": batch_seconds * 1000,
    }
    rows = [
        compare(f"{STREAMS} streams, {what}", UNITS[what], value, ("limit", LIMITS[what]), Goal(1.0))
        for what, value in found.items()
    ]
    rows += [
        compare(f"{STREAMS} streams, {what}", UNITS[what], value, (_peer_name(what), peers[what]))
        for what, value in found.items()
    ]
    return [row.as_row() for row in rows]


def _peer_name(what: str) -> str:
    if what == "median batch":
        return "plain Spark application of one stream"
    return f"{APPS_MEANT} plain applications ({APPS} measured)"


def run_apps(folder: Path, seconds: float, settle: float) -> tuple[Usage, float]:
    """What the plain applications use, and their median batch (seconds)."""
    apps = [_start_app(folder / f"app-{number}") for number in range(APPS)]
    try:
        for app in apps:
            _hear(app, "running")
        time.sleep(max(settle, LEAST_BATCHES * INTERVAL_SECONDS))
        usage = measure_trees([app.pid for app in apps], seconds)
        batches: list[float] = []
        for app in apps:
            assert app.stdin is not None
            app.stdin.close()
            batches.append(float(_hear(app, "batch_seconds")))
    finally:
        for app in apps:
            end_child(app)
    return usage, median(batches)


def _start_app(folder: Path) -> subprocess.Popen[bytes]:
    folder.mkdir(parents=True)
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LOCAL_DIRS": str(folder)}
    with (folder / "errors.log").open("wb") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", "penstock.spark.trials.small_app", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=env,
            start_new_session=True,
        )


def _hear(app: subprocess.Popen[bytes], name: str) -> Any:
    assert app.stdout is not None
    for line in app.stdout:
        if line.startswith(b"{") and name in (told := json.loads(line)):
            return told[name]
    raise RuntimeError(f"a plain application ended before it said {name!r}")


def measure(work: Path, given: Mapping[str, Any], progress: Progress) -> dict[str, float]:
    """The child's side: what the container and its streams use."""
    from penstock.bench.container import Managing, TrialContainer, TrialSettings

    progress("starting Spark")
    trial = TrialContainer(work, TrialSettings(slots=8, heap="800m"))
    codes = trial.declare(_declare)
    began = time.monotonic()
    with Managing(trial, codes, trial.bus, available_now=False), feeding(trial):
        progress(f"{STREAMS} streams started in {time.monotonic() - began:.0f} s")
        time.sleep(given["settle"])
        before = {c.spec.name: len(_batches(trial, c)) for c in codes}
        usage = measure_trees([os.getpid()], given["seconds"])
        names = [c.spec.name for c in codes]
        seconds = [b.seconds for c in codes for b in _batches(trial, c)[before[c.spec.name] :]]
        running = sum(trial.host.state(name) == "running" for name in names)
        progress(
            f"{running} run; {len(seconds)} batches in {given['seconds']} s; "
            f"{usage.root_cores:.2f} of {usage.cores:.2f} cores are Python's"
        )
        if running < STREAMS:
            raise RuntimeError(f"only {running} of {STREAMS} streams run")
    return {"cores": usage.cores, "pss_bytes": usage.pss_bytes, "batch_seconds": median(seconds)}


def _batches(trial: Any, code: Any) -> Sequence[Any]:
    from penstock.spark.trials.plain import read_progress

    return read_progress(trial.host.tasks(code.spec.name)[0].progress())


def _declare() -> None:
    from penstock import job, topic

    for number in range(STREAMS):
        rows = topic(f"in-{number}", schema="line string", codec="string", partitions=1)
        shouted = topic(f"out-{number}", schema="line string", codec="string", partitions=1)

        @job(name=f"shout-{number}", reads=rows, writes=shouted, trigger=f"{INTERVAL_SECONDS}s")
        def shout(lines: Any) -> Any:
            return lines.selectExpr("upper(line) as line")


@contextmanager
def feeding(trial: Any) -> Generator[None]:
    """Rows for every stream, a few topics at a time, each once in an interval."""
    ended = threading.Event()
    thread = threading.Thread(target=_feed, args=(trial, ended), daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(10.0)


def _feed(trial: Any, ended: threading.Event) -> None:
    from penstock.model.records import Record

    records = [Record(None, b"a line of text", 0)] * (RATE * INTERVAL_SECONDS)
    began, turn = time.monotonic(), 0
    while not ended.is_set():
        trial.log.append(f"in-{turn % STREAMS}", records)
        turn += 1
        ended.wait(max(0.0, began + turn * INTERVAL_SECONDS / STREAMS - time.monotonic()))
