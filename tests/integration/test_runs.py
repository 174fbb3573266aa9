"""A task's runs, one after the other: what the next begins with, how one ends, and what is said of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from integration.copying import copy_job, ids, rows
from penstock import job, sink, topic
from penstock.spark.host import RUNS_KEPT
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark


def test_the_second_run_of_a_drained_idle_project_has_no_backlog(world: World) -> None:
    codes = world.run(copy_job)
    world.produce("in", rows(0, 300))
    world.settle()
    assert world.host.drain(30.0)
    world.restart(codes)
    assert sum(p.backlog for p in world.host.collect(0.0).partitions) == 0


def picky_job(sleep_seconds: float = 0.0) -> None:
    """Fails at a negative id, and takes its time."""
    source = topic("in", schema="id long", partitions=2)
    target = topic("out", schema="id long", partitions=2)

    @job(reads=source, writes=target, trigger=INTERVAL)
    def pick(rows):
        def check(batches):
            import time

            for batch in batches:
                time.sleep(sleep_seconds)
                if (batch["id"] < 0).any():
                    raise ValueError("a negative id")
                yield batch

        return rows.mapInPandas(check, "id long")


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    """Without a turn of the host."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def texts(world: World, kind: str) -> list[str]:
    return [e.text for e in world.events if e.kind == kind]


def test_a_failed_task_that_is_drained_is_not_clean_and_starts_no_more(world: World) -> None:
    world.run(picky_job)
    world.produce("in", [{"id": -1}])
    world.until(lambda: bool(texts(world, "failed")))
    assert not world.host.drain(30.0)
    world.events += world.host.tick(time.time() + 3600.0)
    assert texts(world, "restarted") == [] and world.host.state("pick") == "failed"


def test_a_failure_that_a_drain_sees_first_is_told_and_not_healed(world: World) -> None:
    world.topics.create("in", 2)
    world.produce("in", [{"id": -1}])
    world.run(picky_job)
    (task,) = world.host.tasks("pick")
    wait_for(lambda: not task.at_edge())
    assert not world.host.drain(30.0)
    assert task.state == "failed"
    world.turn()
    (text,) = texts(world, "failed")
    assert "a negative id" in text and "starts again" not in text
    world.events += world.host.tick(time.time() + 3600.0)
    assert len(texts(world, "failed")) == 1 and world.host.state("pick") == "failed"


def test_a_drain_that_must_stop_a_batch_says_so_and_the_next_run_does_it_again(world: World) -> None:
    world.topics.create("in", 2)
    world.produce("in", rows(0, 20))
    codes = world.run(lambda: picky_job(2.0))
    (task,) = world.host.tasks("pick")
    wait_for(lambda: not task.at_edge())
    assert not world.host.drain(0.3)
    assert task.state == "stopped" and ids(world) == []
    world.restart(codes)
    world.settle()
    assert ids(world) == list(range(20))


def test_a_job_may_be_removed_before_its_last_batch_is_measured(world: World) -> None:
    world.run(copy_job)
    world.produce("in", rows(0, 20))
    wait_for(lambda: ids(world) == list(range(20)))
    assert world.host.drain(30.0)
    world.host.remove("copy")
    assert world.host.collect(time.time()).batches == ()


def test_only_the_newest_runs_of_a_task_are_kept(world: World) -> None:
    world.run(picky_job)
    world.produce("in", [{"id": -1}])
    now = time.time()
    for _ in range(RUNS_KEPT + 2):
        wait_for(lambda: world.host.tasks("pick")[0].look() != "running")
        world.events += world.host.tick(now)
        now += 100.0
        world.events += world.host.tick(now)
    assert len(texts(world, "restarted")) == RUNS_KEPT + 2
    assert len(world.host._runs) == RUNS_KEPT


def test_a_function_that_is_deaf_to_interrupts_does_not_hold_up_a_stop(world: World) -> None:
    called, go = threading.Event(), threading.Event()
    source = topic("in", schema="id long", partitions=1)

    def keep(frame: object, batch_id: int) -> None:
        called.set()
        assert go.wait(60.0)

    def declare() -> None:
        @job(name="deaf", reads=source, writes=sink(foreach_batch=keep), trigger=INTERVAL)
        def deaf(rows):
            return rows

    world.run(declare)
    (task,) = world.host.tasks("deaf")
    task._place.session.conf.set("spark.sql.streaming.stopTimeout", "1s")
    world.produce("in", [{"id": 1}])
    world.until(called.is_set)
    try:
        world.host.stop()
        assert (task.state, task.ended_clean(), task.stopped_inside()) == ("stopped", False, True)
    finally:
        go.set()
    assert task._query is not None
    task._query.awaitTermination(30)
