"""A pipeline that runs in this process tree: one container, and the loops that watch it, size it and keep its house.

Rules: nothing is started before all that can be known to be wrong was said; a start that fails leaves a journal that
says why and no process behind; the JVM's death ends the run, with what is known of the cause.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.adapters.files.journal import FileJournal
from penstock.app.loops import Loop, Loops, in_words
from penstock.app.parts import (
    ProjectLock,
    container_settings,
    job_codes,
    make_bus,
    make_executors,
    open_topics,
    reads_and_writes,
)
from penstock.app.reaching import check_reach
from penstock.app.runs import ProjectRuns
from penstock.app.settings import Settings, load_settings
from penstock.app.sizes import SizesKept, read_sizes
from penstock.app.validating import set_at
from penstock.authoring import Pipeline, check_pipeline, load_pipeline
from penstock.control.autoscaler import Autoscaler, Room
from penstock.control.reporting import Reporter, Tender
from penstock.core.controller.strategy import strategy_named
from penstock.core.jobs.first_sizes import first_sizes
from penstock.model.errors import SpecError
from penstock.model.status import JobState, Phase, RunEvent, RunHeader, RunHistory, RunStatus
from penstock.ports.clock import Clock
from penstock.ports.services import RunRequest
from penstock.ports.topics import Topics

if TYPE_CHECKING:
    from penstock.spark.host import Host

LOOK_SECONDS = 0.5
OVER: frozenset[JobState] = frozenset({"stopped", "drained", "failed", "fenced"})
"""States that a job does not leave by itself."""
Progress = Callable[[str], None]


def end_of(states: AbstractSet[JobState]) -> Phase:
    """How a run has ended, by how its jobs stand."""
    return "failed" if states & {"failed", "fenced"} else "ended"


def load_checked(file: Path) -> Pipeline:
    """A pipeline that has no problem which can be found without Spark; the first one is raised."""
    pipeline = load_pipeline(file)
    problems = check_pipeline(pipeline)
    if problems:
        raise problems[0] if len(problems) == 1 else _first_of(problems)
    return pipeline


def _first_of(problems: list[SpecError]) -> SpecError:
    first = problems[0]
    more = f"{first.remedy} (and {len(problems) - 1} more: `penstock validate` lists all)"
    return SpecError(first.field, first.value, first.problem, more, first.place)


@dataclass(frozen=True)
class RunPlan:
    """All that a run is made of, read and checked; nothing is started yet."""

    pipeline: Pipeline
    settings: Settings
    strategy: str
    available_now: bool = False

    @property
    def name(self) -> str:
        return self.settings.project.name or self.pipeline.spec.name


def plan_run(request: RunRequest, env: Mapping[str, str]) -> RunPlan:
    """Read the pipeline and its settings; a SpecError says what cannot be used."""
    pipeline = load_checked(request.pipeline)
    settings = load_settings(pipeline.folder, request.profile, env, request.overrides)
    strategy_named(request.strategy)
    tuned = pipeline.tuned(settings.defaults, settings.jobs, settings.place, settings.job_places)
    problems = check_pipeline(tuned)
    if problems:
        raise problems[0].at(set_at(problems[0], tuned, settings))
    return RunPlan(tuned, settings, request.strategy, request.available_now)


class PipelineRun:
    """`ports.services.Run`: started when it is made."""

    def __init__(self, plan: RunPlan, clock: Clock, progress: Progress) -> None:
        self._plan, self._clock = plan, clock
        self._lock, self._observing = threading.Lock(), threading.Lock()
        self._closed = False
        self._last: RunStatus | None = None
        settings = plan.settings
        self._project_lock = ProjectLock(settings.work)
        self._session: Any = None
        self._host: Host | None = None
        with ExitStack() as undo:  # until the journal is open, nobody closes this run
            undo.callback(self._project_lock.release)
            self.topics: Topics = open_topics(settings)
            undo.callback(self.topics.close)
            self.header = self._new_header()
            self._journal = FileJournal(settings.runs_folder, self.header.run, settings.store.journal_bytes)
            self._journal.write(self.header)
            undo.pop_all()
        self.loops = Loops(clock, self._loop_failed)
        try:
            self._start(progress)
        except BaseException as error:
            self._journal.write(RunEvent(clock.now(), "failed", in_words(error), details=str(error)))
            self.close()
            raise

    @property
    def folder(self) -> Path:
        """Its journal and report."""
        return self._journal.folder

    @property
    def pipeline(self) -> Pipeline:
        return self._plan.pipeline

    def _new_header(self) -> RunHeader:
        plan, now = self._plan, self._clock.now()
        stamp = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
        run = f"r{stamp}-{plan.pipeline.spec.name}"[:100].rstrip(".-")
        number = 2
        while (plan.settings.runs_folder / run).exists():
            run, number = f"{run.partition('_')[0][:90]}_{number}", number + 1
        return RunHeader(
            run=run,
            pipeline=plan.name,
            file=str(plan.pipeline.module.__file__),
            profile=plan.settings.profile,
            strategy=plan.strategy,
            started_at=now,
            jobs=tuple(job.name for job in plan.pipeline.spec.jobs),
            edges=reads_and_writes(plan.pipeline),
        )

    def _start(self, progress: Progress) -> None:
        from penstock.spark.host import Host
        from penstock.spark.session import start_session

        settings, spec = self._plan.settings, self._plan.pipeline.spec
        check_reach(settings)
        where = "in this process tree" if settings.spark.local else f"on {settings.spark.master}"
        progress(f"starting Spark {where}")
        self._session = start_session(container_settings(settings, spec.name))
        executors = make_executors(settings, self._session)
        self._host = host = Host(self._session, settings.checkpoints, executors)
        strategy = strategy_named(self._plan.strategy)
        room = None if settings.spark.local else Room(
            settings.executors.slots, settings.executors.min, settings.executors.max
        )  # fmt: skip
        self.autoscaler = Autoscaler(spec, strategy, host, self._journal, room)
        self._tender = Tender(host, self._journal)
        self.reporter = Reporter(spec, host, self.autoscaler, self._tender, self._journal)
        bus = make_bus(settings, self.topics)
        sizes = self._first_sizes()
        for code in job_codes(self._plan.pipeline):
            progress(f"starting job {code.spec.name}")
            host.add(code, bus, available_now=self._plan.available_now, threads=sizes[code.spec.name])
        self.reporter.phase = "running"
        self.loops.start("tender", self._tender)
        self.loops.start("autoscaler", _Shared(self.autoscaler, self._observing))
        self.loops.start("reporter", self.reporter)
        self.loops.start("end", _Ending(self, host))
        self.loops.start("sizes", SizesKept(settings.work, spec.jobs, host))
        if settings.bus.kind == "log":
            self.loops.start("upkeep", _Housework(self))

    def _first_sizes(self) -> dict[str, int]:
        """Threads that jobs begin with; where they are not the declared ones, that is said."""
        settings, jobs = self._plan.settings, self._plan.pipeline.spec.jobs
        slots = (
            settings.spark.slots
            if settings.spark.local
            else settings.executors.slots * settings.executors.max
        )
        fixed = self._plan.strategy == "static"
        sizes = first_sizes(jobs, {} if fixed else read_sizes(settings.work), slots)
        for job in jobs:
            if sizes[job.name] != job.options.threads:
                text = f"{job.name} begins with {sizes[job.name]} threads, as the run before left it."
                self._journal.write(RunEvent(self._clock.now(), "size", text, job.name))
        return sizes

    def status(self) -> RunStatus:
        """How everything stands now; once it is over, how it stood at the end."""
        with self._lock:
            if self._closed or self._host is None:
                assert self._last is not None
                return self._last
            self._last = self.reporter.status(self._clock.now())
            return self._last

    def drain(self, timeout_seconds: float) -> bool:
        """Every task to a clean batch edge, then stop; False when some had to be stopped in the middle."""
        if self.reporter.phase in ("ended", "failed"):
            return True
        clean = self.settle(timeout_seconds)
        self.end(self.outcome())
        return clean

    def outcome(self) -> Phase:
        """How a run ends whose jobs stand as they do: one that failed, or was fenced off, has not done its work."""
        assert self._host is not None
        return end_of({self._host.state(name) for name in self.header.jobs})

    def settle(self, timeout_seconds: float) -> bool:
        """The same, and the run is not over yet."""
        assert self._host is not None
        self.reporter.phase = "draining"
        self.autoscaler.only_observes = True
        clean = self._host.drain(timeout_seconds)
        self.look_again()
        return clean

    def look_again(self) -> None:
        """Take in what was measured last."""
        self.autoscaler.only_observes = True
        with self._observing:
            self.autoscaler.step(self._clock.now())

    def end(self, phase: Phase) -> None:
        """The run is over: say so in its journal."""
        self.reporter.phase = phase
        self._last = self.reporter.status(self._clock.now())
        self._journal.write(self._last)

    def fail(self, why: str) -> None:
        """The container cannot go on."""
        now = self._clock.now()
        self._journal.write(RunEvent(now, "failed", why))
        with self._lock:
            self.reporter.phase = "failed"
            jobs, slots, executors = (
                ((), 0, 0)
                if self._last is None
                else (self._last.jobs, self._last.slots, self._last.executors)
            )
            self._last = RunStatus(now, "failed", jobs, slots, executors, 0, 0, 0, "", why)
            self._journal.write(self._last)

    def history(self) -> RunHistory:
        """All that its journal holds."""
        return ProjectRuns(self.folder.parent).history(self.header.run)

    def note(self, kind: str, text: str) -> None:
        """Something worth keeping, and telling."""
        self.reporter.message = text
        self._journal.write(RunEvent(self._clock.now(), kind, text))

    def close(self) -> None:
        """Let go of everything; what still runs is stopped at once."""
        if self._closed:
            return
        self.loops.stop()
        with self._lock:
            self._closed = True
        with ExitStack() as held:  # from the last to the first, each whatever the others raise
            held.callback(self._project_lock.release)
            held.callback(self._journal.close)
            held.callback(self.topics.close)
            held.callback(self._leave_spark)
            if self._host is not None:
                held.callback(self._say_stopped)
                held.callback(self._host.stop)

    def _say_stopped(self) -> None:
        """Nobody waited for a drain."""
        if self._last is not None and self._last.phase in ("running", "draining"):
            self.end("ended")

    def _leave_spark(self) -> None:
        if self._session is not None:
            from penstock.spark.session import stop_session

            stop_session(self._session)

    def _loop_failed(self, name: str, why: str) -> None:
        if self._host is not None and self._host.trouble():
            return  # the ending says what happened
        self.note("trouble", f"The {name} loop met a problem and goes on: {why}")


class _Shared:
    """A loop that others step too, one at a time."""

    def __init__(self, loop: Loop, lock: threading.Lock) -> None:
        self._loop, self._lock = loop, lock

    def step(self, now: float) -> float | None:
        with self._lock:
            return self._loop.step(now)


class _Ending:
    """Notices that a run is over: all jobs have ended by themselves, none can go on, or the JVM is gone."""

    def __init__(self, run: PipelineRun, host: Host) -> None:
        self._run, self._host = run, host

    def step(self, now: float) -> float | None:
        why = self._host.trouble()
        if why:
            self._run.fail(why)
            return None
        if self._run.reporter.phase != "running":
            return None
        if {self._host.state(name) for name in self._run.header.jobs} <= OVER:
            self._run.look_again()
            self._run.end(self._run.outcome())
            return None
        return now + LOOK_SECONDS


class _Housework:
    """The embedded log keeps its own house."""

    def __init__(self, run: PipelineRun) -> None:
        from penstock.adapters.log import EmbeddedLog

        assert isinstance(run.topics, EmbeddedLog)
        self._log, self._run = run.topics, run
        self._told: set[str] = set()

    def step(self, now: float) -> float:
        done = self._log.maintain()
        for problem in done.problems:
            if problem not in self._told:
                self._told.add(problem)
                self._run.note("corrupt", problem)
        return max(done.wake_at, now)
