"""A job starts anew: what it forgets, what stays, where it begins, and when that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.app.parts import ProjectLock, open_topics, project_at_rest
from penstock.app.resetting import resetting
from penstock.app.settings import Settings, load_settings
from penstock.authoring import load_pipeline
from penstock.model.errors import ConflictError, MissingError
from penstock.model.ids import Fence, TopicPartition
from penstock.model.jobs import PipelineSpec
from penstock.model.records import Record
from penstock.ports.services import InputPosition, Origin
from penstock.spark.layout import initial_offsets, open_layout

PIPELINE = """
from penstock import job, topic

a = topic("a", schema="n long", partitions=2)
b = topic("b", schema="n long")

@job(reads=a, writes=b)
def copy(rows):
    return rows
"""
FIRST, SECOND = TopicPartition("a", 0), TopicPartition("a", 1)


@pytest.fixture
def pipeline(tmp_path: Path) -> PipelineSpec:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    return load_pipeline(tmp_path).spec


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """A project whose job has read 4 of 6 records, and keeps ten bytes of state."""
    held = load_settings(tmp_path)
    topics = open_topics(held)
    topics.create("a", 2)
    topics.append("a", [Record(None, b"x", 0)] * 3, 0)
    topics.append("a", [Record(None, b"x", 0)] * 3, 1)
    topics.commit_progress("copy", {FIRST: 3, SECOND: 1})
    topics.commit_progress("other", {FIRST: 2})
    topics.close()
    layout = open_layout(held.checkpoints, "copy", 1, {"a": 2})
    initial_offsets(layout, 0, lambda: {FIRST: 0, SECOND: 0})
    state = layout.checkpoint(0) / "state" / "0" / "1" / "2.zip"
    state.parent.mkdir(parents=True)
    state.write_text("0123456789")
    return held


def progress(settings: Settings, reader: str) -> dict[TopicPartition, int]:
    topics = open_topics(settings)
    held = topics.progress(reader, topics.topics())
    topics.close()
    return held


def test_what_a_job_remembers_is_told(settings: Settings, pipeline: PipelineSpec) -> None:
    with resetting(settings, pipeline, "copy") as job:
        memory = job.remembers()
    assert (memory.generation, memory.state_bytes) == (1, 10)
    assert memory.inputs == (InputPosition("a", 4, 6),) and memory.outputs == ("b",)


@pytest.mark.parametrize(("origin", "position"), [("earliest", {}), ("latest", {FIRST: 3, SECOND: 3})])
def test_position_and_state_are_forgotten_and_fences_keep_growing(
    settings: Settings, pipeline: PipelineSpec, origin: Origin, position: dict[TopicPartition, int]
) -> None:
    with resetting(settings, pipeline, "copy") as job:
        job.carry_out(origin)
        assert job.remembers().state_bytes == 0
    assert progress(settings, "copy") == position and progress(settings, "other") == {FIRST: 2}
    assert not list((settings.checkpoints / "copy").glob("g*"))
    again = open_layout(settings.checkpoints, "copy", 1, {"a": 2})
    assert Fence(again.generation, again.epoch) > Fence(1, 1) and again.generation == 2


def test_a_job_that_never_ran_may_begin_at_the_end(tmp_path: Path, pipeline: PipelineSpec) -> None:
    held = load_settings(tmp_path)
    topics = open_topics(held)
    topics.create("a", 1)
    topics.append("a", [Record(None, b"x", 0)] * 3)
    topics.close()
    with resetting(held, pipeline, "copy") as job:
        assert job.remembers().generation == 0
        job.carry_out("latest")
    assert progress(held, "copy") == {FIRST: 3}


def test_under_a_running_project_nothing_is_forgotten(settings: Settings, pipeline: PipelineSpec) -> None:
    running = ProjectLock(settings.work)
    with pytest.raises(ConflictError, match=r"going on already \(process \d+\); end it first\.$"):
        resetting(settings, pipeline, "copy").__enter__()
    running.release()
    assert progress(settings, "copy") == {FIRST: 3, SECOND: 1}


def test_no_run_begins_while_a_project_is_held_at_rest(settings: Settings) -> None:
    with project_at_rest(settings.work), pytest.raises(ConflictError):
        ProjectLock(settings.work)
    ProjectLock(settings.work).release()


def test_a_project_without_a_work_folder_is_at_rest_and_gets_none(tmp_path: Path) -> None:
    with project_at_rest(tmp_path / "work"):
        assert not (tmp_path / "work").exists()


def test_a_job_that_is_not_there_is_said_with_those_there_are(
    settings: Settings, pipeline: PipelineSpec
) -> None:
    with pytest.raises(MissingError, match=r"no job 'cpoy' \(there are: copy\)"):
        resetting(settings, pipeline, "cpoy").__enter__()
