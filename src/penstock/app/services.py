"""`ports.services.Services`: what commands ask for, made of this room's parts."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from penstock.adapters.files.journal import FileRuns
from penstock.app.clock import SystemClock
from penstock.app.parts import open_topics, project_at_rest
from penstock.app.project import create_project
from penstock.app.settings import load_settings
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

    def topics(self, project: Path, profile: str | None) -> Topics:
        return open_topics(load_settings(project, profile, os.environ))

    def at_rest(self, project: Path, profile: str | None) -> AbstractContextManager[None]:
        return project_at_rest(load_settings(project, profile, os.environ).work)

    def resetting(self, project: Path, profile: str | None, job: str) -> AbstractContextManager[JobReset]:
        from penstock.app.resetting import resetting

        return resetting(load_settings(project, profile, os.environ), self.load(project), job)

    def runs(self, project: Path) -> Runs:
        return FileRuns(load_settings(project, None, os.environ).runs_folder)

    def doctor(self, project: Path, profile: str | None) -> list[Check]:
        from penstock.app.doctor import look_around

        return look_around(load_settings(project, profile, os.environ))

    def benches(self, family: str) -> Sequence[Bench]:
        from penstock.app.benches import benches_of

        return benches_of(family, self)

    def kafka_jars(self, target: Path, progress: Callable[[str], None]) -> list[Path]:
        from penstock.app.kafka_jars import fetch_kafka_jars

        return fetch_kafka_jars(target, progress)

    def demo(self, folder: Path, progress: Callable[[str], None]) -> Run:
        from penstock.app.demo import start_demo

        return start_demo(folder, self._clock, progress)
