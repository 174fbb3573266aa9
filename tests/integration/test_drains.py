"""A drain that finds a batch stopped in its middle lets it finish, and forms no other."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from penstock import job, topic
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark


def dawdling() -> Callable[[Any], Any]:
    """Made here so that it travels to workers by value."""

    def dawdle(batches: Any) -> Any:
        import time

        for batch in batches:
            time.sleep(0.5)
            yield batch

    return dawdle


def slow_copy() -> None:
    """Takes half a second for a batch that has records."""
    source = topic("in", schema="id long", partitions=2)
    target = topic("out", schema="id long", partitions=2)

    @job(reads=source, writes=target, trigger=INTERVAL)
    def work(rows):
        return rows.mapInPandas(dawdling(), "id long")


def slow_sum() -> None:
    source = topic("in", schema="id long", partitions=2)
    target = topic("out", schema="bucket long, n long", key="bucket", partitions=2)

    @job(reads=source, writes=target, mode="update", trigger=INTERVAL, state_partitions=2)
    def work(rows):
        slow = rows.mapInPandas(dawdling(), "id long")
        return slow.groupBy((slow["id"] % 2).alias("bucket")).count().withColumnRenamed("count", "n")


def read_through(world: World) -> int:
    """How many records the outputs account for."""
    rows = world.rows("out")
    return sum(world.latest("out", "bucket", "n").values()) if rows and "n" in rows[0] else len(rows)


def end_of_newest_batch(world: World) -> int:
    """How many records are read once the newest batch in the checkpoint is done: admission says how many it holds."""
    batches = world.folder / "checkpoints" / "work" / "g1" / "0" / "offsets"
    newest = max((file for file in batches.iterdir() if file.name.isdigit()), key=lambda file: int(file.name))
    return sum(json.loads(newest.read_text().splitlines()[2])["offsets"].values())


def numbered(start: int, end: int) -> list[dict[str, int]]:
    return [{"id": i} for i in range(start, end)]


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("declare", [slow_copy, slow_sum])
def test_a_batch_that_was_stopped_is_finished_and_no_other_begins(
    world: World, declare: Callable[[], None]
) -> None:
    codes = world.run(declare)
    world.produce("in", numbered(0, 10))
    world.settle(20.0)
    world.produce("in", numbered(10, 20))
    (task,) = world.host.tasks("work")
    wait_for(lambda: not task.at_edge())
    task.stop()
    planned = end_of_newest_batch(world)
    assert task.stopped_inside() and read_through(world) == 10 < planned <= 20
    world.produce("in", numbered(20, 30))
    assert world.host.drain(30.0)
    (again,) = world.host.tasks("work")
    assert again is not task and (again.state, again.at_edge()) == ("drained", True)
    assert read_through(world) == planned
    assert world.host.state("work") == "drained"
    world.restart(codes)
    world.settle(20.0)
    assert read_through(world) == 30


def test_without_time_left_the_batch_stays_for_the_next_run(world: World) -> None:
    world.run(slow_copy)
    world.produce("in", numbered(0, 10))
    (task,) = world.host.tasks("work")
    wait_for(lambda: not task.at_edge())
    task.stop()
    assert not world.host.drain(0.0)
    assert world.host.tasks("work") == [task] and read_through(world) == 0


class Deaf:
    """Topics that do not answer until they are let go."""

    def __init__(self, topics: Any) -> None:
        self._topics = topics
        self.silent, self.asked, self.go = False, threading.Event(), threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._topics, name)

    def _wait(self) -> None:
        if self.silent:
            self.asked.set()
            assert self.go.wait(60.0)

    def end_offsets(self, topics: Any) -> Any:
        self._wait()
        return self._topics.end_offsets(topics)

    def open_producer(self, producer: str, fence: Any) -> Any:
        self._wait()
        return self._topics.open_producer(producer, fence)


@pytest.fixture
def deaf(world: World) -> Deaf:
    topics = Deaf(world.topics)
    world.bus.topics = topics  # type: ignore[misc,assignment]
    return topics


def answers(world: World) -> dict[str, object]:
    """What status and changes ask of a host, in a thread of its own; empty while it does not answer."""
    told: dict[str, object] = {}

    def ask() -> None:
        host = world.host
        host.set_threads("work", 3)
        told.update(threads=host.threads(), state=host.state("work"), counts=host.counts("work"))

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(20.0)
    return told


@pytest.mark.parametrize("blocked", ["measuring", "starting"])
def test_topics_that_do_not_answer_hold_up_neither_status_nor_changes(
    world: World, deaf: Deaf, blocked: str
) -> None:
    world.run(slow_copy)
    (task,) = world.host.tasks("work")
    now = time.time()
    if blocked == "starting":
        assert task._query is not None
        world.produce("in", [{"id": i} for i in range(3)])
        world.settle(20.0)
        task.planner.error = RuntimeError("it was struck by lightning")
        task._query.stop()
        wait_for(lambda: task.look() == "failed")
        world.events += world.host.tick(now)
    deaf.silent = True
    step = world.host.collect if blocked == "measuring" else world.host.tick
    stuck = threading.Thread(target=lambda: step(now + 100.0), daemon=True)
    stuck.start()
    assert deaf.asked.wait(30.0)
    try:
        assert answers(world).get("threads") == {"work": 3}
    finally:
        deaf.go.set()
        stuck.join(30.0)
    assert not stuck.is_alive()
    if blocked == "starting":
        assert [t.threads for t in world.host.tasks("work")] == [3], "the change is not lost"
        assert world.host.state("work") == "running"
