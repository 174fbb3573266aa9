"""`penstock demo`: a word count takes the right size by itself, up and then down, and ends.

The source's rate is not guessed: the jobs are measured on one thread first, and the batch-time formula says which rate
needs 10 and 20 threads on this machine. At the end the counts are held against the sentences that went in.
"""

from __future__ import annotations

import json
import math
import shutil
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.app.demo_files import WORDS_PER_SENTENCE, write_demo
from penstock.app.running import PipelineRun, plan_run
from penstock.control.load import Load, Schedule, plan_constant
from penstock.control.load_records import Sentences, make_texts
from penstock.control.reporting import cost_in
from penstock.core.sizing.batch_time import carried_rate, threads_for
from penstock.model.decisions import Decision, JobProposal, ScaleThreads
from penstock.model.status import RunHeader, RunHistory, RunStatus
from penstock.model.units import format_rate
from penstock.ports.clock import Clock
from penstock.ports.services import RunRequest
from penstock.ports.topics import Topics

SIZES = {"split": 10, "count": 20}
FIRST_RATES = Schedule(tuple((4.0 * i, (20.0, 55.0, 15.0, 50.0)[i % 4]) for i in range(12)))
"""Sentences per second while one thread of each job is measured: below what it can do, and up and down, since only
batches of different sizes tell what a record costs from what a Spark task does."""
ROOM_SHARE = 0.4
"""Where in the range of rates that need these sizes the source is set."""
LOOK_SECONDS = 0.5
SAME_SHARE = 0.03
"""Two rates in a row that differ by no more are the same: nothing is learnt any more."""
MEASURE_AT_LEAST_SECONDS = 24.0
"""The first batches hold what starting costs, and two rates may agree on that."""
MEASURE_SECONDS = 30.0
"""At most: a machine that is so busy that nothing settles is sized by what is known then."""
UP_SECONDS = 37.0
DOWN_SECONDS = 27.0
SETTLE_SECONDS = 12.0
SEED = 52


def start_demo(folder: Path, clock: Clock, progress: Callable[[str], None]) -> DemoRun:
    """The demo in a folder of its own, which is written anew."""
    folder = folder.absolute()
    shutil.rmtree(folder / ".penstock", ignore_errors=True)
    plan = plan_run(RunRequest(write_demo(folder)), {})
    return DemoRun(PipelineRun(plan, clock, progress), clock)


class DemoRun:
    """`ports.services.Run` of the demo."""

    def __init__(self, run: PipelineRun, clock: Clock) -> None:
        self._run = run
        self._director = Director(run, clock.now())
        run.loops.start("director", self._director)

    @property
    def header(self) -> RunHeader:
        return self._run.header

    @property
    def folder(self) -> Path:
        return self._run.folder

    def status(self) -> RunStatus:
        return self._run.status()

    def drain(self, timeout_seconds: float) -> bool:
        self._director.stopped = True
        return self._run.drain(timeout_seconds)

    def history(self) -> RunHistory:
        return self._run.history()

    def close(self) -> None:
        self._director.stopped = True
        self._run.close()


@dataclass(frozen=True, slots=True)
class RatePlan:
    """The source's rate, and what led to it."""

    per_second: float
    carried: Mapping[str, float]
    """Sentences per second that each job carries with the threads it shall have."""
    needs: Mapping[str, int]
    """Threads that the formula asks for at this rate."""

    def in_words(self) -> str:
        carried = " and ".join(
            f"{SIZES[job]} threads of {job} {format_rate(rate)}" for job, rate in self.carried.items()
        )
        needs = " and ".join(f"{n} for {job}" for job, n in self.needs.items())
        return (
            f"As measured, {carried} sentences carry; the source goes up to {format_rate(self.per_second)}, "
            f"for which the formula gives {needs}."
        )


def plan_rate(proposals: Mapping[str, JobProposal]) -> RatePlan:
    """A rate that needs exactly these sizes, with room for batches that take longer under load; the nearest where
    there is none."""
    per_sentence = {"split": 1.0, "count": float(WORDS_PER_SENTENCE)}
    costs = {job: cost_in(proposals[job].evidence) for job in SIZES}
    seconds = {job: proposals[job].evidence.objective_seconds for job in SIZES}

    def carried(job: str, threads: int) -> float:
        return carried_rate(costs[job], seconds[job], threads) / per_sentence[job]

    most = min(carried(job, size) for job, size in SIZES.items())
    least = max(carried(job, size - 1) for job, size in SIZES.items())
    rate = least + ROOM_SHARE * (most - least) if least < most else most * 0.97
    needs = {job: threads_for(costs[job], rate * per_sentence[job], seconds[job]).threads for job in SIZES}
    return RatePlan(rate, {job: carried(job, size) for job, size in SIZES.items()}, needs)


class Director:
    """Leads through the demo: measure, up, down, settle, check."""

    def __init__(self, run: PipelineRun, now: float) -> None:
        self.stopped = False
        self._run = run
        self._topic = run.pipeline.spec.topic("sentences")
        self._texts = make_texts(Sentences(SEED, WORDS_PER_SENTENCE), self._topic)
        self._rate = math.nan
        self._load: Load | None = self._loading(FIRST_RATES, now)
        self._scene: Callable[[float], bool] = self._measure
        self._began = now
        self._looked, self._looked_at = 0.0, ""
        self._rose_at = self._fell_at = math.inf
        self._changes: dict[str, Decision] = {}
        run.note("demo", "Few sentences come while one thread of each job is measured.")

    def step(self, now: float) -> float | None:
        """Feed the source, and see whether the next scene begins."""
        if self.stopped or self._run.reporter.phase != "running":
            return None
        wake = self._load.step(now) if self._load is not None else None
        if now - self._looked >= LOOK_SECONDS:
            self._looked = now
            changed = self._run.autoscaler.seen.changed
            if changed is not None:
                self._changes[changed.id] = changed
            if not self._scene(now):
                return None
        return min(now + LOOK_SECONDS, wake if wake is not None else now + LOOK_SECONDS)

    def _loading(self, schedule: Schedule, now: float) -> Load:
        return Load(self._run.topics, self._topic.name, schedule, self._texts, now)

    def _turn(self, scene: Callable[[float], bool], now: float) -> bool:
        self._scene, self._began = scene, now
        return True

    def _measure(self, now: float) -> bool:
        decision = self._run.autoscaler.seen.decision
        if decision is None or decision.id == self._looked_at:
            return True
        self._looked_at = decision.id
        proposals = {p.job: p for p in decision.proposals}
        if any(not p.evidence.stages for p in proposals.values()):
            return True
        plan, before = plan_rate(proposals), self._rate
        self._rate = plan.per_second
        settled = decision.verdict != "observe" and abs(self._rate - before) <= SAME_SHARE * before
        passed = now - self._began
        if passed < MEASURE_AT_LEAST_SECONDS or (not settled and passed < MEASURE_SECONDS):
            return True
        self._run.note("demo", plan.in_words())
        self._load = self._loading(plan_constant(self._rate), now)
        self._rose_at = now
        return self._turn(self._go_up, now)

    def _go_up(self, now: float) -> bool:
        if now - self._began < UP_SECONDS:
            return True
        self._run.note("demo", f"The source's rate halves to {format_rate(self._rate / 2)}.")
        self._load = self._loading(plan_constant(self._rate / 2), now)
        self._fell_at = now
        return self._turn(self._go_down, now)

    def _go_down(self, now: float) -> bool:
        if now - self._began < DOWN_SECONDS:
            return True
        self._load = None
        self._run.autoscaler.only_observes = True  # what is left is worked off by those who are there
        return self._turn(self._settle, now)

    def _settle(self, now: float) -> bool:
        left = sum(self._run.autoscaler.seen.backlog.values())
        if left > 0 and now - self._began < SETTLE_SECONDS:
            return True
        self._run.settle(SETTLE_SECONDS)
        sized, steps = describe_steps(list(self._changes.values()), self._rose_at, self._fell_at)
        self._run.note("check", steps)
        exact, text = check_counts(self._run.topics)
        self._run.note("check", text)
        self._run.end("ended" if exact and sized else "failed")
        return False


def describe_steps(changes: Sequence[Decision], rose_at: float, fell_at: float) -> tuple[bool, str]:
    """Whether both jobs went up and down, and in how many decisions."""
    up = _of(changes, rose_at, fell_at, lambda before, after: after > before)
    down = _of(changes, fell_at, math.inf, lambda before, after: after < before)
    sized = set(up) == set(down) == set(SIZES)
    told = f"Up: {_paths(up)}; down: {_paths(down)}"
    return (
        sized,
        f"{told}." if sized else f"{told}: a job that was to change did not; run it on a quieter machine.",
    )


def _paths(found: Mapping[str, Sequence[str]]) -> str:
    return ", ".join(f"{job} {' -> '.join(path)}" for job, path in found.items()) or "nothing"


def _of(
    changes: Sequence[Decision], start: float, end: float, way: Callable[[int, int], bool]
) -> dict[str, list[str]]:
    """Per job, the sizes it went through in one direction, each with what of it was lent for a backlog."""
    found: dict[str, list[str]] = {}
    for decision in changes:
        proposals = {p.job: p for p in decision.proposals}
        for action in decision.actions:
            if not isinstance(action, ScaleThreads) or not start <= decision.at < end:
                continue
            asked = proposals[action.job]
            if way(asked.threads, action.threads):
                lent = action.threads - asked.steady
                size = (
                    f"{action.threads} ({asked.steady} + {lent} for the backlog)"
                    if lent > 0
                    else f"{action.threads}"
                )
                found.setdefault(action.job, [f"{asked.threads}"]).append(size)
    return found


def check_counts(topics: Topics) -> tuple[bool, str]:
    """Whether the newest count of every word is how often it stood in the sentences."""
    expected: Counter[str] = Counter()
    sentences = 0
    for info in topics.describe("sentences").partitions:
        for stored in topics.read(info.place, info.begin, info.end - info.begin):
            sentences += 1
            expected.update((stored.record.value or b"").decode().split(" "))
    counted: dict[str, int] = {}
    for info in topics.describe("counts").partitions:
        for stored in topics.read(info.place, info.begin, info.end - info.begin):
            row = json.loads(stored.record.value or b"{}")
            counted[row["word"]] = row["n"]
    if counted == dict(expected):
        return (
            True,
            f"Checked: all {expected.total():,} words of {sentences:,} sentences are counted exactly.",
        )
    wrong = [w for w in {*expected, *counted} if expected.get(w) != counted.get(w)]
    return False, (
        f"The counts of {len(wrong)} words are wrong (of {expected.total():,} words in {sentences:,} sentences): "
        f"{', '.join(f'{w}: {counted.get(w)} instead of {expected.get(w)}' for w in sorted(wrong)[:5])}."
    )
