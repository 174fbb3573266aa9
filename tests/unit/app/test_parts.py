"""What settings name is made as they say; one run at a time; and what each job reads and writes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.adapters.memory import MemoryTopics
from penstock.app.parts import (
    ProjectLock,
    container_settings,
    job_codes,
    make_bus,
    open_topics,
    reads_and_writes,
)
from penstock.app.settings import Settings, load_settings
from penstock.authoring import Pipeline, load_pipeline
from penstock.model.errors import ConflictError
from penstock.model.records import Record
from penstock.spark.bus import LogBus
from penstock.spark.kafka import KafkaBus
from penstock.spark.session import _conf as session_conf


def settings(folder: Path, **overrides: str) -> Settings:
    return load_settings(folder, overrides={k.replace("__", "."): v for k, v in overrides.items()})


def pipeline(folder: Path, text: str) -> Pipeline:
    (folder / "pipeline.py").write_text(f"from penstock import *\n{text}")
    return load_pipeline(folder)


# One run at a time


def test_a_second_run_is_refused_with_a_sentence_that_says_who_runs(tmp_path: Path) -> None:
    first = ProjectLock(tmp_path / "work")
    with pytest.raises(ConflictError) as caught:
        ProjectLock(tmp_path / "work")
    text = str(caught.value)
    assert f"going on already (process {os.getpid()})" in text and "store.folder" in text
    first.release()
    ProjectLock(tmp_path / "work").release()


def test_a_refused_run_leaves_the_holders_name_where_it_is(tmp_path: Path) -> None:
    first = ProjectLock(tmp_path)
    for _ in range(2):
        with pytest.raises(ConflictError, match=f"process {os.getpid()}"):
            ProjectLock(tmp_path)
    first.release()


def test_what_a_dead_run_left_holds_nobody_up(tmp_path: Path) -> None:
    """The name of a process that is gone stands in the file, but the lock went with it."""
    (tmp_path / "run.lock").write_text("process 1")
    held = ProjectLock(tmp_path)
    assert (tmp_path / "run.lock").read_text() == f"process {os.getpid()}"
    held.release()


def test_two_work_folders_are_two_projects(tmp_path: Path) -> None:
    for lock in [ProjectLock(tmp_path / name) for name in ("one", "two")]:
        lock.release()


# Edges


TOPICS = """
a = topic("a", schema="n long")
b = topic("b", schema="n long")
"""


def test_edges_join_writers_topics_and_readers_and_name_the_world_outside(tmp_path: Path) -> None:
    """Two write b and two read it: each pair is an edge; what nobody writes or reads ends in the world."""
    held = pipeline(
        tmp_path,
        TOPICS
        + """
@job(reads=a, writes=b)
def one(rows): return rows

@job(reads=a, writes=[b, "c"])
def two(rows): return rows, rows

@job(reads=b, writes=sink("noop"))
def three(rows): return rows

@job(reads=[b, b], writes="d")
def four(left, right): return left
""",
    )
    assert reads_and_writes(held) == (
        ("", "a", "one"),
        ("", "a", "two"),
        ("one", "b", "three"),
        ("one", "b", "four"),
        ("two", "b", "three"),
        ("two", "b", "four"),
        ("two", "c", ""),
        ("four", "d", ""),
        ("three", "noop", ""),
    )


def test_a_source_that_is_no_topic_is_the_world_outside(tmp_path: Path) -> None:
    held = pipeline(
        tmp_path,
        """
@job(reads=source("rate", rowsPerSecond=5), writes="ticks")
def tick(rows): return rows
""",
    )
    assert reads_and_writes(held) == (("tick", "ticks", ""), ("", "rate", "tick"))


def test_a_topic_that_is_named_like_a_format_shares_no_edge_with_it(tmp_path: Path) -> None:
    held = pipeline(
        tmp_path,
        """
@job(reads=source("rate", rowsPerSecond=5), writes="rate")
def tick(rows): return rows

@job(reads="rate", writes=sink("parquet", path="out"))
def keep(rows): return rows

@job(reads=source("parquet", "n long", path="in"), writes="other")
def load(rows): return rows
""",
    )
    assert reads_and_writes(held) == (
        ("tick", "rate", "keep"),
        ("load", "other", ""),
        ("", "rate (source)", "tick"),
        ("", "parquet", "load"),
        ("keep", "parquet", ""),
    )


# Topics, bus, container


def test_the_log_is_the_bus_of_a_project_without_kafka(tmp_path: Path) -> None:
    held = settings(tmp_path)
    topics = open_topics(held)
    assert isinstance(topics, EmbeddedLog)
    topics.create("a", 1)
    bus = make_bus(held, topics)
    assert isinstance(bus, LogBus) and bus.topics is topics
    topics.close()
    again = open_topics(held)
    assert again.topics() == ["a"], "it is the project's own folder"
    again.close()


def test_kafkas_bus_knows_its_servers(tmp_path: Path) -> None:
    held = settings(tmp_path, bus__kind="kafka", bus__servers="one:9092,two:9092")
    topics = MemoryTopics()
    bus = make_bus(held, topics)
    assert isinstance(bus, KafkaBus) and bus.topics is topics
    assert bus.client == {"bootstrap.servers": "one:9092,two:9092"}


def test_the_container_is_what_settings_ask_for(tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(
        """
[spark]
slots = 3
heap = "700m"
packages = ["org:one:1", "org:two:2"]
[spark.conf]
"spark.jars.packages" = "org:own:0"
"spark.sql.shuffle.partitions" = "5"
"""
    )
    held = container_settings(load_settings(tmp_path), "shop")
    assert (held.slots, held.heap, held.name) == (3, "700m", "penstock-shop")
    assert held.conf["spark.jars.packages"] == "org:own:0,org:one:1,org:two:2"
    assert held.conf["spark.sql.shuffle.partitions"] == "5"


def test_durable_alone_says_whether_commits_and_checkpoints_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    counts: dict[str, int] = {}
    for value in ("true", "false"):
        held = settings(tmp_path / value, bus__durable=value)
        topics = open_topics(held)
        topics.create("a", 1)
        synced.clear()
        topics.append("a", [Record(None, b"x", 0)])
        counts[value] = len(synced)
        topics.close()
        options = session_conf(container_settings(held, "shop"))["spark.driver.extraJavaOptions"]
        assert f"-Dpenstock.checkpoint.sync={value}" in options
    assert counts["true"] >= 1 and counts["false"] == 0


@pytest.mark.parametrize("least", [1, 3])
def test_the_least_number_of_executors_alone_says_what_a_cluster_begins_with(
    tmp_path: Path, least: int
) -> None:
    held = settings(tmp_path, spark__master="spark://localhost:7077", executors__min=str(least))
    conf = session_conf(container_settings(held, "shop"))
    names = ("minExecutors", "initialExecutors")
    assert [conf[f"spark.dynamicAllocation.{name}"] for name in names] == [str(least)] * 2
    assert "spark.dynamicAllocation.minExecutors" not in session_conf(
        container_settings(settings(tmp_path), "x")
    )


def test_jobs_travel_with_their_functions_and_all_topics(tmp_path: Path) -> None:
    held = pipeline(
        tmp_path,
        TOPICS
        + """
@job(reads=a, writes=b)
def one(rows): return ("one", rows)

two = job(reads=b, writes=sink("noop"), sql="select * from b", name="two")
""",
    )
    first, second = job_codes(held)
    assert first.function is not None and first.function(5) == ("one", 5) and second.function is None
    assert set(first.topics) == {"a", "b"} and first.folder == str(tmp_path)
