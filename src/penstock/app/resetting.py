"""Starts a job anew: forgets how far it is and what it keeps as state, so that its next run is of a new generation.

Rules: only in a project at rest; position first, generation after, so that a crash in between leaves a job that goes on
as before and can be reset again; what the job wrote stays. Needs no Spark.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.app.parts import open_topics, project_at_rest
from penstock.app.settings import Settings
from penstock.model.errors import MissingError
from penstock.model.jobs import JobSpec, PipelineSpec
from penstock.ports.services import InputPosition, JobMemory, Origin
from penstock.ports.topics import Topics
from penstock.spark.layout import begin_anew, generation_of, state_bytes


@contextmanager
def resetting(settings: Settings, pipeline: PipelineSpec, job: str) -> Generator[StoredJob]:
    """One job of a project at rest."""
    found = next((each for each in pipeline.jobs if each.name == job), None)
    if found is None:
        known = ", ".join(each.name for each in pipeline.jobs)
        raise MissingError(f"There is no job {job!r} (there are: {known}); name one of these.")
    with project_at_rest(settings.work):
        topics = open_topics(settings)
        try:
            yield StoredJob(found, topics, settings.checkpoints)
        finally:
            topics.close()


@dataclass(frozen=True)
class StoredJob:
    """`ports.services.JobReset`."""

    spec: JobSpec
    topics: Topics
    checkpoints: Path

    def remembers(self) -> JobMemory:
        done = self.topics.progress(self.spec.name, self._inputs(), stable=False)
        positions: list[InputPosition] = []
        for name in self._inputs():
            info = self.topics.describe(name)
            read = sum(
                min(p.end, max(p.begin, done.get(p.place, p.begin))) - p.begin for p in info.partitions
            )
            positions.append(InputPosition(name, read, info.records))
        return JobMemory(
            self.spec.name,
            generation_of(self.checkpoints, self.spec.name),
            state_bytes(self.checkpoints, self.spec.name),
            tuple(positions),
            self.spec.output_topics,
        )

    def carry_out(self, origin: Origin) -> None:
        self.topics.forget_reader(self.spec.name)
        if origin == "latest":
            self.topics.commit_progress(self.spec.name, self.topics.end_offsets(self._inputs()))
        begin_anew(self.checkpoints, self.spec.name)

    def _inputs(self) -> list[str]:
        """Those that are there: the next run makes the others."""
        there = set(self.topics.topics())
        return [name for name in dict.fromkeys(self.spec.input_topics) if name in there]
