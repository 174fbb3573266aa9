"""Jobs that work through what is there: a chain to its end, sources that grow meanwhile, jobs that cannot go on."""

from __future__ import annotations

import pytest

from penstock import job, topic
from penstock.spark.starting import prepare_topics
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark
OVER = {"stopped", "failed", "fenced"}


def chain() -> None:
    """Declared the wrong way round, so that readers start before their writers; the last one counts."""
    first = topic("first", schema="id long", partitions=2)
    second = topic("second", schema="id long", partitions=2)
    third = topic("third", schema="id long", partitions=2)
    sums = topic("sums", schema="bucket long, n long", key="bucket", partitions=2)

    @job(reads=third, writes=sums, mode="update", trigger=INTERVAL, state_partitions=2)
    def add_up(rows):
        return rows.groupBy((rows["id"] % 3).alias("bucket")).count().withColumnRenamed("count", "n")

    @job(reads=second, writes=third, trigger=INTERVAL)
    def pass_on(rows):
        return rows

    @job(reads=first, writes=second, trigger=INTERVAL, max_records_per_batch=40)
    def begin(rows):
        return rows


def finish(world: World) -> None:
    world.until(lambda: {world.host.state(name) for name in world.host.threads()} <= OVER)


def numbered(start: int, end: int) -> list[dict[str, int]]:
    return [{"id": i} for i in range(start, end)]


def test_a_chain_is_worked_through_to_its_end(world: World) -> None:
    codes = world.declare(chain)
    world.topics.create("first", 2)
    world.produce("first", numbered(0, 150))
    for code in codes:
        world.host.add(code, world.bus, available_now=True)
    finish(world)
    assert {world.host.state(code.spec.name) for code in codes} == {"stopped"}
    assert world.latest("sums", "bucket", "n") == {0: 50, 1: 50, 2: 50}
    assert all(task.at_edge() for code in codes for task in world.host.tasks(code.spec.name))
    assert world.events == [], "looking again is no news"
    assert world.host.counts("add_up")[2] == 0, "and no restart"


def test_a_source_that_grows_is_read_to_where_it_ended_at_the_start(world: World) -> None:
    codes = world.declare(chain)
    world.topics.create("first", 2)
    world.produce("first", numbered(0, 60))
    for code in codes:
        world.host.add(code, world.bus, available_now=True)
    world.produce("first", numbered(60, 90))
    finish(world)
    assert sum(world.latest("sums", "bucket", "n").values()) == 60
    world.restart(codes, available_now=True)
    finish(world)
    assert sum(world.latest("sums", "bucket", "n").values()) == 90


def test_who_comes_after_all_others_have_gone_sees_what_came_since(world: World) -> None:
    def declare() -> None:
        first = topic("first", schema="id long", partitions=2)
        second = topic("second", schema="id long", partitions=2)

        @job(reads=first, writes=second, trigger=INTERVAL)
        def begin(rows):
            return rows

    codes = world.declare(declare)
    for start, end in ((0, 5), (5, 9)):
        prepare_topics(codes[0], world.bus)
        world.produce("first", numbered(start, end))
        world.host.add(codes[0], world.bus, available_now=True)
        finish(world)
        assert sorted(row["id"] for row in world.rows("second")) == list(range(end))
        world.host.remove("begin")


def broken_chain() -> None:
    """The first job fails at its third record, the second would take all."""
    first = topic("first", schema="id long", partitions=1)
    second = topic("second", schema="id long", partitions=1)
    third = topic("third", schema="id long", partitions=1)

    @job(reads=first, writes=second, trigger=INTERVAL, max_records_per_batch=1)
    def begin(rows):
        def check(batches):
            for batch in batches:
                if (batch["id"] >= 2).any():
                    raise ValueError("no more than two")
                yield batch

        return rows.mapInPandas(check, "id long")

    @job(reads=second, writes=third, trigger=INTERVAL)
    def pass_on(rows):
        return rows


def test_a_job_without_hope_is_given_up_and_the_others_finish(world: World) -> None:
    codes = world.declare(broken_chain)
    world.topics.create("first", 1)
    world.produce("first", numbered(0, 5))
    for code in codes:
        world.host.add(code, world.bus, available_now=True)
    finish(world)
    assert (world.host.state("begin"), world.host.state("pass_on")) == ("failed", "stopped")
    assert [row["id"] for row in world.rows("third")] == [0, 1]
    failed = [e.text for e in world.events if e.kind == "failed"]
    assert len(failed) == 4, "the first run committed two batches, three more in a row none"
    assert all(text.endswith("no more than two.") for text in failed)
    (given_up,) = [e.text for e in world.events if e.kind == "given_up"]
    assert given_up == "begin-0 is given up: 3 starts in a row committed no batch."
    assert world.events[-1].kind != "retry"
