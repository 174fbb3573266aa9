"""A real checkpoint is swept of what no version refers to, and its state is read again without it."""

from __future__ import annotations

import os
import shutil
import time

import pytest

from penstock import job, topic
from penstock.spark.session import jvm
from penstock.spark.state_files import GRACE_SECONDS, sweep_state
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark


def count_words() -> None:
    words = topic("words", schema="word string", key="word", partitions=1)
    counts = topic("counts", schema="word string, n long", key="word", partitions=1)

    @job(reads=words, writes=counts, mode="update", trigger=INTERVAL, state_partitions=1)
    def count(rows):
        return rows.groupBy("word").count().withColumnRenamed("count", "n")


def test_what_no_version_needs_goes_and_the_state_stays(world: World) -> None:
    codes = world.run(count_words)
    for _ in range(3):
        world.produce("words", [{"word": w} for w in ("a", "b", "a")], key="word")
        world.settle(20.0)
    assert world.host.drain(30.0)
    checkpoint = world.folder / "checkpoints" / "count" / "g1" / "0"
    files = sorted(checkpoint.glob("state/**/SSTs/*.sst"))
    assert files, "the state has files of its own"
    left = files[0].with_name("000099-left-over.sst")
    shutil.copy(files[0], left)
    old = time.time() - 2 * GRACE_SECONDS
    for file in checkpoint.rglob("*"):
        os.utime(file, (old, old))
    assert sweep_state(checkpoint, time.time()) == 1
    assert sorted(checkpoint.glob("state/**/SSTs/*.sst")) == files
    # So that the state is read from its files, as a new process would.
    jvm(world.spark).org.apache.spark.sql.execution.streaming.state.StateStore.stop()
    world.restart(codes)
    world.produce("words", [{"word": "a"}], key="word")
    world.settle(20.0)
    assert world.latest("counts", "word", "n") == {"a": 7, "b": 3}
