"""A job that would begin again beside what it left is refused, and can be started anew, or goes on where that is safe."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from integration.copying import copy_job, lose_tail, rows
from penstock import job, sink, topic
from penstock.app.resetting import StoredJob
from penstock.model.errors import ConflictError
from penstock.model.records import Record
from worlds import INTERVAL, World, counted

pytestmark = pytest.mark.spark


def keep_job(path: Path, partitions: int = 2) -> None:
    source = topic("in", schema="id long", partitions=partitions)

    @job(reads=source, writes=sink("parquet", path=str(path)), trigger=INTERVAL)
    def keep(rows):
        return rows


def kept(world: World, path: Path) -> list[int]:
    if not path.exists():
        return []
    return sorted(row.id for row in world.spark.read.schema("id long").parquet(str(path)).collect())


@pytest.mark.parametrize("how", ["reset", "checkpoint lost"])
def test_a_file_sink_begins_again_at_another_path_only(world: World, tmp_path: Path, how: str) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    codes = world.run(lambda: keep_job(old))
    world.produce("in", rows(0, 50))
    world.until(lambda: kept(world, old) == list(range(50)))
    assert world.host.drain(30.0)
    world.restart(codes)  # it goes on at the same path
    world.produce("in", rows(50, 60))
    world.until(lambda: kept(world, old) == list(range(60)))
    assert world.host.drain(30.0)
    checkpoints = world.folder / "checkpoints"
    if how == "reset":
        StoredJob(codes[0].spec, world.topics, checkpoints).carry_out("earliest")
    else:
        shutil.rmtree(checkpoints / "keep" / "g1" / "0")
    with pytest.raises(
        ConflictError, match=r"path '.*old' holds the batches of an older one.*another path\.$"
    ):
        world.restart(codes)
    world.restart(world.declare(lambda: keep_job(new)))
    world.produce("in", rows(60, 70))
    world.until(lambda: kept(world, new) == list(range(70)))


def test_after_a_drain_a_file_sink_has_told_of_its_last_batch(world: World, tmp_path: Path) -> None:
    world.run(lambda: keep_job(tmp_path / "files"))
    world.topics.append("in", [Record(None, b"no json", 0)], 0)
    world.produce("in", rows(0, 20))
    world.until(lambda: kept(world, tmp_path / "files") == list(range(20)))
    assert world.host.drain(30.0)
    assert world.topics.progress("keep", ["in"]) == world.topics.end_offsets(["in"])
    assert [stored.record.value for stored in world.stored("in.dead")] == [b"no json"]


def count_job(*, other: bool = False) -> None:
    reads = [topic("in", schema="id long", partitions=2)]
    reads += [topic("more", schema="id long", partitions=2)] if other else []
    target = topic("out", schema="id long, count long", partitions=1, key="id")

    @job(reads=reads, writes=target, trigger=INTERVAL, mode="update", name="count")
    def count(rows, *more):
        for each in more:
            rows = rows.union(each)
        return rows.groupBy("id").count()


@pytest.mark.parametrize("change", ["another input", "layout lost"])
def test_state_is_left_behind_on_purpose_only(world: World, change: str) -> None:
    codes = world.run(count_job)
    world.produce("in", rows(0, 10))
    world.settle()
    assert world.host.drain(30.0)
    if change == "layout lost":
        (world.folder / "checkpoints" / "count" / "layout.json").unlink()
        words = "layout.json, which says"
    else:
        codes = world.declare(lambda: count_job(other=True))
        words = "topic 'more' is new"
    with pytest.raises(ConflictError, match=rf"{words}.*penstock reset count"):
        world.restart(codes)
    StoredJob(codes[0].spec, world.topics, world.folder / "checkpoints").carry_out("latest")
    world.restart(codes)
    world.produce("in", rows(0, 10))
    world.settle()
    assert world.events == []
    assert world.latest("out", "id", "count") == dict.fromkeys(range(10), 1)
    assert [row["count"] for row in world.rows("out")] == [1] * 20


@pytest.mark.parametrize("where", ["world", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_a_job_without_state_goes_on_when_its_checkpoints_are_gone(
    request: pytest.FixtureRequest, prefix: str, where: str
) -> None:
    world: World = request.getfixturevalue(where)
    codes = world.run(lambda: copy_job(prefix, exactly_once=where == "kafka"))
    world.produce(f"{prefix}.in", rows(0, 50))
    world.settle()
    assert world.host.drain(30.0)
    shutil.rmtree(world.folder / "checkpoints")
    world.restart(codes)
    world.produce(f"{prefix}.in", rows(50, 60))
    world.settle()
    assert world.events == []
    assert counted(row["id"] for row in world.rows(f"{prefix}.out")) == counted(range(60))


@pytest.mark.parametrize("where", ["world", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_inputs_that_take_turns_survive_a_lost_checkpoint_tail(
    request: pytest.FixtureRequest, prefix: str, where: str
) -> None:
    world: World = request.getfixturevalue(where)
    name, first, second = f"{prefix}-both", f"{prefix}.a", f"{prefix}.b"

    def declare() -> None:
        reads = [topic(given, schema="id long", partitions=2) for given in (first, second)]
        target = topic(f"{prefix}.out", schema="id long", partitions=1)

        @job(name=name, reads=reads, writes=target, trigger=INTERVAL, exactly_once=where == "kafka")
        def both(a, b):
            return b.union(a)

    codes = world.run(declare)
    for begin, given in ((0, first), (10, second), (20, first)):
        world.produce(given, rows(begin, begin + 10))
        world.settle()
    assert world.host.drain(30.0)
    assert lose_tail(world, name, 2) == 2
    world.produce(second, rows(30, 40))
    world.restart(codes)
    world.settle()
    assert world.events == []
    assert counted(row["id"] for row in world.rows(f"{prefix}.out")) == counted(range(40))
