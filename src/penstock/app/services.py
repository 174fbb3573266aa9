"""`ports.services.Services`: what commands ask for, made of this room's parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from penstock.adapters.memory import MemoryTopics
from penstock.app.clock import SystemClock
from penstock.app.parts import open_topics, project_at_rest
from penstock.app.project import create_project
from penstock.app.runs import ProjectRuns
from penstock.app.settings import Settings, load_settings
from penstock.model.errors import MissingError
from penstock.model.jobs import PipelineSpec
from penstock.model.status import Check
from penstock.ports.journal import Runs
from penstock.ports.services import Bench, JobReset, Run, RunRequest
from penstock.ports.topics import Topics


class AppServices:
    """Everything a command needs of the rest."""

    def __init__(self) -> None:
        self._clock = SystemClock()

    def create_project(self, folder: Path) -> list[Path]:
        return create_project(folder)

    def load(self, pipeline: Path) -> PipelineSpec:
        from penstock.app.running import load_checked

        return load_checked(pipeline).spec

    def validate(self, pipeline: Path, profile: str | None) -> list[Check]:
        from penstock.app.validating import validate

        return validate(pipeline, profile, os.environ)

    def start(self, request: RunRequest, progress: Callable[[str], None]) -> Run:
        from penstock.app.running import PipelineRun, plan_run

        return PipelineRun(plan_run(request, os.environ), self._clock, progress)

    def topics(self, project: Path, profile: str | None, *, make: bool = True) -> Topics:
        settings = _settings(project, profile)
        if not make and settings.bus.kind == "log" and not settings.log_folder.is_dir():
            return MemoryTopics()
        return open_topics(settings)

    def at_rest(self, project: Path, profile: str | None) -> AbstractContextManager[None]:
        return project_at_rest(load_settings(project, profile, os.environ).work)

    def resetting(self, project: Path, profile: str | None, job: str) -> AbstractContextManager[JobReset]:
        from penstock.app.resetting import resetting

        return resetting(load_settings(project, profile, os.environ), self.load(project), job)

    def runs(self, project: Path, profile: str | None = None) -> Runs:
        return ProjectRuns(_settings(project, profile).runs_folder)

    def doctor(self, project: Path, profile: str | None) -> list[Check]:
        from penstock.app.doctor import look_around

        return look_around(_settings(project, profile))

    def benches(self, family: str) -> Sequence[Bench]:
        from penstock.app.benches import benches_of

        return benches_of(family, self)

    def kafka_jars(self, target: Path, progress: Callable[[str], None]) -> list[Path]:
        from penstock.app.kafka_jars import fetch_kafka_jars

        return fetch_kafka_jars(target, progress)

    def demo(self, folder: Path, progress: Callable[[str], None]) -> Run:
        from penstock.app.demo import start_demo

        return start_demo(folder, self._clock, progress)


def _settings(project: Path, profile: str | None) -> Settings:
    """The settings of a project that is there; its pipeline's file stands for its folder."""
    folder = project.parent if project.is_file() else project
    if not folder.is_dir():
        raise MissingError(
            f"There is no project at {str(project)!r}; name its folder with --project, or make one with `penstock init`."
        )
    return load_settings(folder, profile, os.environ)
