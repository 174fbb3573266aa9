"""What interfaces may ask for. `app` implements it: the only room that knows all technology."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Protocol

from penstock.model.jobs import PipelineSpec
from penstock.model.status import Check, RunHeader, RunHistory, RunStatus
from penstock.ports.journal import Runs
from penstock.ports.topics import Topics


@dataclass(frozen=True, slots=True)
class RunRequest:
    """What `penstock run` was asked."""

    pipeline: Path
    profile: str | None = None
    """None: the project file's default."""
    strategy: str = "penstock"
    available_now: bool = False
    """Work through what is there, then end."""
    overrides: Mapping[str, str] = field(default_factory=dict[str, str])
    """Settings given on the command line, by their dotted name."""


class Run(Protocol):
    """A pipeline that runs in this process tree."""

    @property
    def header(self) -> RunHeader: ...

    @property
    def folder(self) -> Path:
        """Its journal and report."""
        ...

    def status(self) -> RunStatus: ...

    def drain(self, timeout_seconds: float) -> bool:
        """Every task to a clean batch edge, then stop; False when some had to be stopped in the middle."""
        ...

    def history(self) -> RunHistory:
        """All that it has told; read from its own folder, whatever other settings say of runs."""
        ...

    def close(self) -> None: ...


Origin = Literal["earliest", "latest"]
"""Where a job begins that starts anew: at the first record that its topics keep, or after the last one."""


@dataclass(frozen=True, slots=True)
class InputPosition:
    """How far a job is in one of its topics (records)."""

    topic: str
    read: int
    """Of those that are kept."""
    kept: int


@dataclass(frozen=True, slots=True)
class JobMemory:
    """What a job remembers between its runs."""

    job: str
    generation: int
    """0 when it never ran here."""
    state_bytes: int
    inputs: tuple[InputPosition, ...]
    outputs: tuple[str, ...]


class JobReset(Protocol):
    """One job of a project at rest, about to start anew; nothing runs in the project until this is closed."""

    def remembers(self) -> JobMemory: ...

    def carry_out(self, origin: Origin) -> None:
        """Forget its state and position; its next run is of a new generation."""
        ...


class Bench(Protocol):
    """One measured comparison; rows are `penstock.bench.rows.BenchRow` as mappings."""

    @property
    def name(self) -> str: ...

    @property
    def describe(self) -> str: ...

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]: ...


class Services(Protocol):
    """Everything a command needs of the rest."""

    def create_project(self, folder: Path) -> list[Path]:
        """Write a new, working project; nothing that is there is overwritten."""
        ...

    def load(self, pipeline: Path) -> PipelineSpec:
        """Declared and checked without Spark."""
        ...

    def validate(self, pipeline: Path, profile: str | None) -> list[Check]:
        """All findings, Spark's analysis of each function on empty frames among them."""
        ...

    def start(self, request: RunRequest, progress: Callable[[str], None]) -> Run: ...

    def topics(self, project: Path, profile: str | None, *, make: bool = True) -> Topics:
        """The project's topics. Without `make` nothing is made for them: where there is no log yet, there is no topic."""
        ...

    def at_rest(self, project: Path, profile: str | None) -> AbstractContextManager[None]:
        """No run is going on in the project, and none begins meanwhile; a ConflictError when one is."""
        ...

    def resetting(self, project: Path, profile: str | None, job: str) -> AbstractContextManager[JobReset]:
        """A job to start anew, in a project at rest; a MissingError names the jobs there are."""
        ...

    def runs(self, project: Path, profile: str | None = None) -> Runs: ...

    def doctor(self, project: Path, profile: str | None) -> list[Check]: ...

    def benches(self, family: str) -> Sequence[Bench]: ...

    def kafka_jars(self, target: Path, progress: Callable[[str], None]) -> list[Path]: ...

    def demo(self, folder: Path, progress: Callable[[str], None]) -> Run:
        """The wordcount demo, its load beside it; ends by itself."""
        ...
