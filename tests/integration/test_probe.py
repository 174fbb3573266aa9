"""What the probe says of real batches: useful time, waits, stages, state, memory, backlog."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.functions import udf

from penstock import job, topic
from penstock.model.observations import BatchSample
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark


def working(samples: list[BatchSample]) -> list[BatchSample]:
    """Batches with records, without the first, in which workers start."""
    return [s for s in samples if sum(s.records_in.values()) > 0][1:]


def test_sleeping_work_is_useful_time_and_shared_by_threads(world: World) -> None:
    def slow(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            time.sleep(0.01 * batch.num_rows)
            yield batch

    def declare() -> None:
        given = topic("in", schema="id long", partitions=4)
        target = topic("out", schema="id long", partitions=4)

        @job(reads=given, writes=target, trigger=INTERVAL, threads=4)
        def sleep(rows):
            return rows.mapInArrow(slow, "id long")

    world.run(declare)
    for _ in range(4):
        world.produce("in", [{"id": i} for i in range(80)])
        world.settle()
    assert any(sample.records_in["in"] >= 40 for sample in world.samples)
    for sample in working(world.samples):
        (stage,) = sample.stages
        slept = 0.01 * sample.records_in["in"]
        # Each task's times and the stage's own are told in whole milliseconds, by different clocks.
        assert slept - 0.01 <= stage.useful_seconds <= 4 * sample.stage_seconds + 0.05
        assert stage.ceiling is None and len(stage.instances) == stage.spark_tasks
        if (
            sample.records_in["in"] >= 40
        ):  # on a busy machine admission may leave one record for a batch of its own
            assert stage.spark_tasks == 4
        assert stage.longest_seconds >= stage.useful_seconds / 4
        assert sum(row.records_in for row in stage.instances) == stage.records_in == sample.records_in["in"]
        assert stage.python_seconds >= slept / 4
        assert 0 < sample.overhead_seconds < sample.duration_seconds


def test_a_stage_behind_a_shuffle_has_the_tasks_that_were_fixed_for_it(world: World) -> None:
    def declare() -> None:
        given = topic("in", schema="id long", partitions=4)
        target = topic("out", schema="k long, n long", key="k", partitions=2)

        @job(reads=given, writes=target, mode="update", trigger=INTERVAL, threads=2, state_partitions=3)
        def count(rows):
            return rows.selectExpr("id % 10 as k").groupBy("k").count().withColumnRenamed("count", "n")

    world.run(declare)
    for _ in range(3):
        world.produce("in", [{"id": i} for i in range(100)])
        world.settle()
    for sample in working(world.samples):
        first, second = sample.stages
        assert (first.spark_tasks, first.ceiling) == (2, None)
        assert (second.spark_tasks, second.ceiling) == (3, 3)
        assert second.records_in == first.records_out > 0
        assert sample.state_rows == 10 and sample.state_bytes > 0
        assert sample.records_out["out"] == 10


def test_waiting_for_a_core_is_no_useful_time(world: World) -> None:
    """Eight tasks that do nothing but compute, on fewer cores than that."""
    if (os.cpu_count() or 1) >= 8:
        pytest.skip("every slot has a core here, so nobody waits for one")

    def declare() -> None:
        given = topic("in", schema="id long", partitions=4)
        target = topic("out", schema="id long", partitions=4)

        @job(reads=given, writes=target, trigger=INTERVAL, threads=8)
        def compute(rows):
            return rows.selectExpr("id + size(filter(sequence(1, 20000), x -> x % 7 = id % 7)) as id")

    world.run(declare)
    for _ in range(3):
        world.produce("in", [{"id": i} for i in range(800)])
        world.settle()
    stages = [stage for sample in working(world.samples) for stage in sample.stages]
    waited = sum(stage.run_queue_wait_seconds for stage in stages)
    useful = sum(stage.useful_seconds for stage in stages)
    elapsed = sum(stage.elapsed_seconds for stage in stages)
    assert waited > 0
    assert useful + waited <= 8 * elapsed + 0.5
    assert useful <= (1 + (os.cpu_count() or 1)) * elapsed + 0.5


def test_a_container_tells_of_its_memory_and_of_each_partition(world: World) -> None:
    @udf("long")
    def same(n: int) -> int:
        return n

    def declare() -> None:
        given = topic("in", schema="id long", partitions=3)
        target = topic("out", schema="id long", partitions=1)

        @job(reads=given, writes=target, trigger=INTERVAL)
        def copy(rows):
            return rows.select(same("id").alias("id"))

    world.run(declare)
    world.produce("in", [{"id": i} for i in range(30)])
    world.settle()
    measured = world.host.collect(5.0)
    held = measured.container
    assert held is not None
    assert 0 < held.heap_used_bytes <= held.heap_committed_bytes <= held.heap_max_bytes
    assert held.gc_count > 0 and held.gc_seconds >= 0
    kinds = {process.kind for process in held.processes if process.rss_bytes > 0}
    assert {"jvm", "driver"} <= kinds
    assert {p.place.partition: p.backlog for p in measured.partitions} == {0: 0, 1: 0, 2: 0}
    world.host.stop()
    world.produce("in", [{"id": i} for i in range(30)])
    later = world.host.collect(6.0)
    assert sum(p.backlog for p in later.partitions) == 30 and all(p.at == 6.0 for p in later.partitions)


def test_what_a_failed_attempt_did_is_lost_time_and_no_part_of_a_rate(world: World, tmp_path: Path) -> None:
    """One of four Spark tasks fails in the first attempt; the replay's stages are its own."""
    marker = tmp_path / "failed"

    def once(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            if 3 in batch.column("id").to_pylist() and not marker.exists():
                time.sleep(0.5)
                marker.touch()
                raise ValueError("only once")
            time.sleep(0.05)
            yield batch

    def declare() -> None:
        given = topic("in", schema="id long", partitions=4)
        target = topic("out", schema="id long", partitions=4)

        @job(reads=given, writes=target, trigger=INTERVAL, threads=4)
        def fragile(rows):
            return rows.mapInArrow(once, "id long")

    world.run(declare)
    world.produce("in", [{"id": i} for i in range(40)])
    world.until(lambda: any(event.kind == "failed" for event in world.events))
    world.settle()
    assert sorted(row["id"] for row in world.rows("out")) == list(range(40))
    [replay] = [s for s in world.samples if s.records_in["in"] == 40]
    [stage] = replay.stages
    assert stage.spark_tasks == 4 and stage.records_in == 40
    assert stage.wasted_seconds > 0
