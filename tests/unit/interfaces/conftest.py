"""A run as journals hold it, and services in memory over a real journal and a real log on a temporary folder."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.adapters.files.journal import FileJournal
from penstock.adapters.log.log import EmbeddedLog
from penstock.adapters.memory import MemoryTopics
from penstock.app.parts import project_at_rest
from penstock.app.project import create_project
from penstock.app.resetting import StoredJob
from penstock.app.runs import ProjectRuns
from penstock.authoring import load_pipeline
from penstock.interfaces.cli import build_app
from penstock.model.decisions import Decision, Evidence, JobProposal, ScaleThreads, StageNeed
from penstock.model.errors import MissingError
from penstock.model.ids import TaskId
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import BatchSample, StageSample
from penstock.model.status import Check, JobStatus, Phase, RunEvent, RunHeader, RunHistory, RunStatus
from penstock.ports.journal import Runs
from penstock.ports.services import Bench, JobReset, Run, RunRequest
from penstock.ports.topics import Topics

START = 1_790_000_000.0
WORDS = 20.0
HEADER = RunHeader(
    "r20260922-080000-wordcount",
    "wordcount",
    "examples/wordcount/pipeline.py",
    "embedded",
    "penstock",
    START,
    ("split", "count"),
    (("", "sentences", "split"), ("split", "words", "count"), ("count", "counts", "")),
)


def evidence(target: float, backlog: float, each: float) -> Evidence:
    return Evidence(
        target_rate=target,
        backlog_records=backlog,
        backlog_rate=backlog / 30,
        true_rate=each,
        observed_rate=each * 0.9,
        selectivity={"words": WORDS},
        overhead_seconds=0.14,
        objective_seconds=2.0,
        predicted_batch_seconds=1.86,
        stages=(StageNeed(0, 18.6, None, 0.01, 0.002), StageNeed(1, 0.4, 8, 0.05)),
    )


def proposal(job: str, threads: int, proposed: int, steady: int, rate: float, each: float) -> JobProposal:
    formula = (
        f"need = the least p with D(p) <= L\n"
        f"D(p) = h + U / p = 0.14 s + {rate:g}/s x 2 s / {each:g}/s / p\n"
        f"D({steady}) = {0.14 + rate * 2 / each / steady:.2f} s <= L = 2 s; with B / t: p = {proposed}"
    )
    reason = (
        f"{job} must take in {rate:g}/s and one thread carries {each:g}/s, so {proposed} threads are needed."
    )
    held = evidence(rate, 5 * rate if proposed > steady else 0.0, each)
    return JobProposal(job, threads, proposed, steady, "none", reason, formula, held)


def sample_history(seconds: int = 110) -> RunHistory:
    """Word count as it goes: 1/1 threads, up in one decision with the backlog's share, back, down when the rate halves."""
    statuses: list[RunStatus] = []
    backlog = {"split": 0.0, "count": 0.0}
    for second in range(seconds):
        offered = 1440.0 if second < 65 else 720.0
        k = (1, 1) if second < 21 else (11, 22) if second < 41 else (10, 20) if second < 75 else (5, 10)
        rows: list[JobStatus] = []
        feed = offered
        for (job, each, ratio), threads in zip(
            (("split", 155.0, WORDS), ("count", 1550.0, 1.0)), k, strict=True
        ):
            capacity = threads * each * 0.93
            taken = min(capacity, feed + backlog[job])
            backlog[job] = max(0.0, backlog[job] + feed - taken)
            wobble = 1 + 0.03 * math.sin(second * 1.7 + threads)
            known = second >= 4
            rows.append(
                JobStatus(
                    job,
                    "running",
                    threads,
                    k[0] if job == "split" else k[1],
                    taken * wobble if known else math.nan,
                    taken * ratio * wobble if known else math.nan,
                    feed,
                    capacity if second >= 8 else math.nan,
                    backlog[job],
                    backlog[job] / taken if taken else math.inf,
                    1.7,
                    second // 2,
                    0,
                    0,
                    "at the size that its demand needs" if second > 30 else "",
                    300.0,
                )
            )
            feed = taken * ratio
        phase: Phase = "starting" if second < 2 else "draining" if second == seconds - 1 else "running"
        ram = int((0.9 + 0.035 * sum(k) + 0.02 * math.sin(second)) * (1 << 30))
        heap = int((0.2 + 0.12 * ((second * 7) % 10) / 10) * (1 << 30))
        statuses.append(RunStatus(START + second, phase, tuple(rows), 32, 1, ram, heap, 1 << 30, ""))
    decisions = [
        Decision(
            f"d-{second}",
            START + second,
            "penstock",
            "hold",
            "Every job has the size that its demand needs.",
            (proposal("split", 10, 10, 10, 1440, 155), proposal("count", 20, 20, 20, 28800, 1550)),
        )
        for second in (10, 51, 61, 85, 95, 105)
    ]
    for second, split, count, why in (
        (21, (1, 11, 10), (1, 22, 20), "Both jobs are under-provisioned; the backlog's share comes on top."),
        (41, (11, 10, 10), (22, 20, 20), "The backlog is gone, and its share with it."),
        (75, (10, 5, 5), (20, 10, 10), "Demand halved."),
    ):
        decisions.append(
            Decision(
                f"d-{second}",
                START + second,
                "penstock",
                "scale",
                why,
                (proposal("split", *split, 1440, 155), proposal("count", *count, 28800, 1550)),
                (
                    ScaleThreads("split", split[1], f"d-{second}"),
                    ScaleThreads("count", count[1], f"d-{second}"),
                ),
                ("rung 1: no imbalance was measured",),
            )
        )
    events = (
        RunEvent(START + 1, "started", "2 jobs started.", "", "", ""),
        RunEvent(
            START + 50, "restarted", "count-0 runs again.", "count", "", "ValueError: <bad>\n  at line 3"
        ),
    )
    ordered = tuple(sorted(decisions, key=lambda d: d.at))
    return RunHistory(HEADER, tuple(statuses), ordered, events)


def batch(job: str, batch_id: int, at: float, threads: int) -> BatchSample:
    stages = (
        StageSample(
            0,
            threads,
            None,
            1.5,
            300.0,
            6000.0,
            python_seconds=0.4,
            gc_seconds=0.02,
            longest_seconds=3.0 / threads,
        ),
        StageSample(1, 8, 8, 0.5, 6000.0, 6000.0, longest_seconds=0.1),
    )
    return BatchSample(
        TaskId(job, 0), 1, 1, batch_id, at, 1.9, 1.7, threads,
        {"sentences": 300.0}, {"words": 6000.0}, 1e4, 1e5, stages, 1234, 5 << 20, 1,
    )  # fmt: skip


class FakeRun:
    """A run that plays a history, one status a call; journals it as a real one would."""

    def __init__(
        self, history: RunHistory, runs: Path, after: Mapping[int, Callable[[], None]] | None = None
    ) -> None:
        self._history, self._after = history, after or {}
        self._journal = FileJournal(runs, history.header.run)
        self._journal.write(history.header)
        self.looks, self.closed, self.drained = 0, False, False
        self.drain_work: Callable[[], bool] = lambda: True

    @property
    def header(self) -> RunHeader:
        return self._history.header

    @property
    def folder(self) -> Path:
        return self._journal.folder

    def status(self) -> RunStatus:
        status = self._history.statuses[min(self.looks, len(self._history.statuses) - 1)]
        for decision in self._history.decisions:
            if status.at <= decision.at < status.at + 1:
                self._journal.write(decision)
        self._journal.write(status)
        self.looks += 1
        self._after.get(self.looks, lambda: None)()
        return status

    def drain(self, timeout_seconds: float) -> bool:
        self.drained = True
        return self.drain_work()

    def history(self) -> RunHistory:
        return ProjectRuns(self.folder.parent).history(self.header.run)

    def close(self) -> None:
        self.closed = True


@dataclass
class FakeBench:
    name: str
    rows: Sequence[Mapping[str, object]]
    describe: str = "compares two things"
    quick: list[bool] = field(default_factory=list[bool])

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]:
        self.quick.append(quick)
        progress("half")
        return self.rows


@dataclass
class FakeServices:
    """What commands ask for; `ports.services.Services`."""

    folder: Path
    checks: list[Check] = field(default_factory=list[Check])
    bench_list: list[Bench] = field(default_factory=list[Bench])
    requests: list[RunRequest] = field(default_factory=list[RunRequest])
    run: FakeRun | None = None
    broken: Exception | None = None

    def create_project(self, folder: Path) -> list[Path]:
        return create_project(folder)

    def load(self, pipeline: Path) -> PipelineSpec:
        return load_pipeline(pipeline).spec

    def validate(self, pipeline: Path, profile: str | None) -> list[Check]:
        return self.checks

    def start(self, request: RunRequest, progress: Callable[[str], None]) -> Run:
        if self.broken is not None:
            raise self.broken
        progress("starting Spark")
        self.requests.append(request)
        assert self.run is not None
        return self.run

    def topics(self, project: Path, profile: str | None, *, make: bool = True) -> Topics:
        if not make and not (self.folder / "log").is_dir():
            return MemoryTopics()
        return EmbeddedLog(self.folder / "log", durable=False)

    def at_rest(self, project: Path, profile: str | None) -> AbstractContextManager[None]:
        return project_at_rest(self.folder / "work")

    @contextmanager
    def resetting(self, project: Path, profile: str | None, job: str) -> Generator[JobReset]:
        with self.at_rest(project, profile):
            topics = self.topics(project, profile)
            yield StoredJob(self.load(project).job(job), topics, self.folder / "work" / "checkpoints")
            topics.close()

    def runs(self, project: Path, profile: str | None = None) -> Runs:
        """A profile has a work folder of its own here."""
        return ProjectRuns(self.folder / (profile or "") / "runs")

    def doctor(self, project: Path, profile: str | None) -> list[Check]:
        return self.checks

    def benches(self, family: str) -> Sequence[Bench]:
        if family != "spark":
            raise MissingError(f"There is no family {family!r} (there are: spark); name one of these.")
        return self.bench_list

    def kafka_jars(self, target: Path, progress: Callable[[str], None]) -> list[Path]:
        progress("fetching")
        return [target / "a.jar"]

    def demo(self, folder: Path, progress: Callable[[str], None]) -> Run:
        assert self.run is not None
        return self.run


class FakeClock:
    """Moves on a little with every look."""

    def __init__(self) -> None:
        self.at = START

    def now(self) -> float:
        self.at += 0.05
        return self.at


@pytest.fixture
def history() -> RunHistory:
    return sample_history()


@pytest.fixture
def services(tmp_path: Path) -> FakeServices:
    return FakeServices(tmp_path)


@pytest.fixture
def journalled(services: FakeServices, history: RunHistory) -> Iterator[FakeServices]:
    """Services over one whole run in the journal."""
    journal = FileJournal(services.folder / "runs", history.header.run)
    entries: list[Any] = [*history.statuses, *history.decisions, *history.events]
    entries += [
        batch(job, i, START + 90 + 2 * i, n) for job, n in (("split", 5), ("count", 10)) for i in range(9)
    ]
    journal.write(history.header)
    for entry in sorted(entries, key=lambda e: getattr(e, "at", None) or e.started_at):
        journal.write(entry)
    yield services
    journal.close()


@dataclass
class Answer:
    """What a command printed and ended with."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Command = Callable[..., Answer]


@pytest.fixture
def command(services: FakeServices, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs one command line over the services in memory, in their folder."""
    monkeypatch.chdir(services.folder)
    app, runner = build_app(services, FakeClock()), CliRunner()

    def run(*words: str, given: str | None = None) -> Answer:
        result = runner.invoke(app, list(words), input=given)
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run


@pytest.fixture
def make_run(services: FakeServices, history: RunHistory) -> Callable[..., FakeRun]:
    """The run that commands will start: one status for ever, in this phase, its first job changed so."""

    def make(
        phase: Phase, after: Mapping[int, Callable[[], None]] | None = None, **first_job: Any
    ) -> FakeRun:
        status = history.statuses[60]
        jobs = (replace(status.jobs[0], **first_job), *status.jobs[1:])
        held = replace(history, statuses=(replace(status, phase=phase, jobs=jobs),))
        services.run = FakeRun(held, services.folder / "runs", after)
        return services.run

    return make


@pytest.fixture
def make_bench() -> Callable[..., FakeBench]:
    return FakeBench
