"""Executors that come later on another host: the embedded log cannot be reached from there, state may be lost."""

from __future__ import annotations

import pytest

from penstock import job, topic
from penstock.model.errors import EnvironmentProblem
from penstock.spark.executors import FixedSlots
from penstock.spark.host import Host
from penstock.spark.reach import CHECK_SECONDS
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark


class Wandering(FixedSlots):
    """Executors that are where a test says."""

    def __init__(self) -> None:
        super().__init__(8)
        self.hosts: list[str] = []

    def elsewhere(self) -> list[str]:
        return self.hosts


def two_jobs() -> None:
    words = topic("words", schema="word string", key="word", partitions=1)
    plain = topic("plain", schema="word string", partitions=1)
    counts = topic("counts", schema="word string, n long", key="word", partitions=1)

    @job(reads=words, writes=plain, trigger=INTERVAL)
    def copy(rows):
        return rows

    @job(reads=words, writes=counts, mode="update", trigger=INTERVAL, state_partitions=1)
    def count(rows):
        return rows.groupBy("word").count().withColumnRenamed("count", "n")


@pytest.fixture
def executors(world: World) -> Wandering:
    found = Wandering()
    world.host = Host(world.spark, world.folder / "checkpoints", found)
    return found


def test_with_the_embedded_log_a_later_executor_elsewhere_is_trouble(
    world: World, executors: Wandering
) -> None:
    world.run(two_jobs)
    world.host.tick(1000.0)
    assert world.host.trouble() == ""
    executors.hosts = ["far"]
    world.host.tick(1000.0 + CHECK_SECONDS / 2)
    assert world.host.trouble() == "", "it is not asked at every step"
    world.host.tick(1000.0 + CHECK_SECONDS)
    assert "The embedded log lies on this host, and executors run on far" in world.host.trouble()


def test_with_the_embedded_log_nothing_starts_beside_an_executor_elsewhere(
    world: World, executors: Wandering
) -> None:
    executors.hosts = ["far"]
    with pytest.raises(EnvironmentProblem, match="executors run on far"):
        world.run(two_jobs)


def test_where_topics_can_be_reached_a_job_with_state_is_warned_of_once(
    world: World, executors: Wandering
) -> None:
    world.bus.one_host = False  # type: ignore[misc]
    world.run(two_jobs)
    executors.hosts = ["far"]
    for step in range(5):
        world.events += world.host.tick(1000.0 + step * CHECK_SECONDS)
    (alert,) = [e for e in world.events if e.kind == "alert"]
    assert alert.job == "count" and "store.folder" in alert.text
    assert world.host.trouble() == ""
