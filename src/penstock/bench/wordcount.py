"""DS2's word count (5.2, 5.3) on real Spark: one strategy after another, over the same stream of sentences.

Every run is `penstock run` on the demo's project (its threads are limited, and the limit counts as work), from one thread
of each job, with the demo's knobs; sentences come from here at a rate that does not depend on what is measured. The
decisions are the strategies' own; all else is the same product, the bound on what a batch may hold included. What is
shown is read from each run's journal.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from penstock.bench.rows import compare
from penstock.bench.sizes import Sizing, read_sizing
from penstock.control.load import Load, Schedule
from penstock.control.load_records import Sentences, make_texts
from penstock.model.errors import EnvironmentProblem, MissingError
from penstock.model.status import RunStatus
from penstock.model.topics import TopicSpec
from penstock.ports.services import Services

RATE = 1_250.0
"""Sentences per second: 25,000 words. Without overhead 8 threads of `split` and 14 of `count` would do."""
SEED, WORDS = 52, 20
TOPIC = "sentences"
JOBS = ("split", "count")
SECONDS, QUICK_SECONDS = 90.0, 34.0
PHASE_SECONDS, QUICK_PHASE_SECONDS = 75.0, 26.0
START_SECONDS, END_SECONDS = 90.0, 10.0
LOOK_SECONDS = 0.25


@dataclass(frozen=True, slots=True)
class Phase:
    """A stretch of one rate."""

    name: str
    rate: float
    seconds: float


class WordcountBench:
    """One experiment: its phases, and the strategies that go through them; the first is ours."""

    def __init__(
        self, name: str, describe: str, write_project: Callable[[Path], Path], services: Services
    ) -> None:
        self.name, self.describe = name, describe
        self._write_project, self._services = write_project, services

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]:
        phases, strategies = plan(self.name, quick)
        found: dict[str, list[Sizing]] = {}
        with TemporaryDirectory(prefix="penstock-bench-") as name:
            topic = self._services.load(self._write_project(Path(name) / "read")).topic(TOPIC)
            for strategy in strategies:
                told = " then ".join(f"{p.rate:,.0f}/s for {p.seconds:.0f} s" for p in phases)
                progress(f"{strategy}: {told}")
                project = self._write_project(Path(name) / strategy)
                found[strategy] = _Trial(project, strategy, self._services).go(phases, topic)
                for phase, sizing in zip(phases, found[strategy], strict=True):
                    progress(f"{strategy}{phase.name}: {in_words(sizing)}")
        return rows_of(self.name, phases, found)


def plan(name: str, quick: bool) -> tuple[list[Phase], tuple[str, ...]]:
    """Phases and strategies of an experiment."""
    if name == "ds2-two-phases":
        seconds = QUICK_PHASE_SECONDS if quick else PHASE_SECONDS
        phases = [Phase(", up", RATE, seconds), Phase(", down", RATE / 2, seconds)]
        return phases, ("penstock", "ds2") if quick else ("penstock", "ds2", "dhalion")
    phases = [Phase("", RATE, QUICK_SECONDS if quick else SECONDS)]
    return phases, ("penstock", "dhalion") if quick else (
        "penstock",
        "ds2",
        "dhalion",
        "spark_dynamic_allocation",
    )


def rows_of(
    bench: str, phases: Sequence[Phase], found: Mapping[str, Sequence[Sizing]]
) -> list[Mapping[str, object]]:
    """One row for each phase, metric and other strategy."""
    ours, *others = found
    rows: list[Mapping[str, object]] = []
    for number, phase in enumerate(phases):
        mine = metrics_of(found[ours][number])
        for other in others:
            theirs = metrics_of(found[other][number])
            for (metric, unit), value in mine.items():
                row = compare(f"{bench}{phase.name}: {metric}", unit, value, (other, theirs[metric, unit]))
                rows.append(row.as_row())
    return rows


def metrics_of(sizing: Sizing) -> dict[tuple[str, str], float]:
    """By name and unit."""
    sizes = {(f"final {job}", "threads"): float(sizing.sizes.get(job, 0)) for job in JOBS}
    return {
        ("decisions", "changes"): float(sizing.decisions),
        ("last change after", "s"): sizing.settled_seconds,
        **sizes,
        ("lag at the end", "s"): sizing.lag_seconds,
        ("instances", "instance-minutes"): sizing.instance_minutes,
    }


def in_words(sizing: Sizing) -> str:
    """A line for who waits."""
    sizes = ", ".join(f"{job} {threads}" for job, threads in sizing.sizes.items())
    return (
        f"{sizing.decisions} changes, the last after {sizing.settled_seconds:.0f} s, at the end {sizes}, "
        f"lag {sizing.lag_seconds:.1f} s, {sizing.instance_minutes:.1f} instance-minutes"
    )


class _Trial:
    """One strategy's run."""

    def __init__(self, project: Path, strategy: str, services: Services) -> None:
        self._pipeline, self._folder, self._strategy = project, project.parent, strategy
        if project.is_dir():
            self._folder = project
        self._services = services

    def go(self, phases: Sequence[Phase], topic: TopicSpec) -> list[Sizing]:
        """Start, load, stop, and read the journal."""
        command = [sys.executable, "-m", "penstock.app.main", "run", str(self._pipeline), "--plain"]
        with (self._folder / "run.log").open("wb") as out:
            run = subprocess.Popen(
                [*command, "--strategy", self._strategy],
                stdin=subprocess.PIPE,
                stdout=out,
                stderr=out,
            )
        topics = None
        try:
            self._await_running(run)
            topics, began = self._services.topics(self._folder, None), time.time()
            maker = make_texts(Sentences(SEED, WORDS), topic)
            _feed(Load(topics, TOPIC, schedule_of(phases), maker, began), run)
        finally:
            if topics is not None:
                topics.close()
            _stop(run)
        history = self._services.runs(self._folder).history()
        found: list[Sizing] = []
        at = began
        for phase in phases:
            found.append(read_sizing(history.statuses, history.decisions, at, at + phase.seconds))
            at += phase.seconds
        return found

    def _await_running(self, run: subprocess.Popen[bytes]) -> None:
        runs = self._services.runs(self._folder)
        until = time.monotonic() + START_SECONDS
        while time.monotonic() < until and run.poll() is None:
            with suppress(MissingError):
                entries, _ = runs.follow()
                if any(isinstance(e, RunStatus) and e.phase == "running" for e in entries):
                    return
            time.sleep(LOOK_SECONDS)
        told = (self._folder / "run.log").read_text(errors="replace")[-2_000:]
        raise EnvironmentProblem(f"The run did not start; `penstock doctor` looks at why. It said:\n{told}")


def _feed(load: Load, run: subprocess.Popen[bytes]) -> None:
    """Sentences until the schedule ends."""
    while (wake := load.step(time.time())) is not None:
        if run.poll() is not None:
            raise EnvironmentProblem("The run ended before its time; `penstock doctor` looks at why.")
        time.sleep(max(0.0, min(wake - time.time(), LOOK_SECONDS)))


def schedule_of(phases: Sequence[Phase]) -> Schedule:
    """Phases, one after the other."""
    points: list[tuple[float, float]] = []
    at = 0.0
    for phase in phases:
        points.append((at, phase.rate))
        at += phase.seconds
    return Schedule(tuple(points), "step", at)


def _stop(run: subprocess.Popen[bytes]) -> None:
    """Drain; then at once; then not gently."""
    for how in (signal.SIGINT, signal.SIGINT, signal.SIGKILL):
        if run.poll() is not None:
            return
        run.send_signal(how)
        with suppress(subprocess.TimeoutExpired):
            run.wait(END_SECONDS)


def wordcount_benches(write_project: Callable[[Path], Path], services: Services) -> list[WordcountBench]:
    """Both experiments; `write_project` writes the demo's project into a folder."""
    return [
        WordcountBench(
            "ds2-wordcount",
            "a word count from one thread each: what each strategy makes of it (DS2 5.2)",
            write_project,
            services,
        ),
        WordcountBench(
            "ds2-two-phases",
            "the same, then half the rate: who gives back (DS2 5.3)",
            write_project,
            services,
        ),
    ]
