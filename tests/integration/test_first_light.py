"""The first whole loop on real Spark: records in, records out, exactly."""

from __future__ import annotations

import pytest

from penstock import job, topic
from worlds import INTERVAL, World, counted

pytestmark = pytest.mark.spark

TEXT = ["the cat sat", "on the mat", "the dog sat on the cat"] * 50


def wordcount() -> None:
    sentences = topic("sentences", schema="line string", partitions=4)
    words = topic("words", schema="word string", key="word", partitions=4)
    counts = topic("counts", schema="word string, n long", key="word", partitions=4)

    @job(reads=sentences, writes=words, trigger=INTERVAL)
    def split(lines):
        return lines.selectExpr("explode(split(line, ' ')) as word")

    @job(reads=words, writes=counts, mode="update", trigger=INTERVAL)
    def count(words):
        return words.groupBy("word").count().withColumnRenamed("count", "n")


def test_wordcount_is_exact_and_measured(world: World) -> None:
    world.run(wordcount)
    world.produce("sentences", [{"line": line} for line in TEXT])
    world.settle()
    expected = counted(word for line in TEXT for word in line.split())
    assert world.latest("counts", "word", "n") == expected
    assert len(world.rows("words")) == sum(expected.values())
    split = [s for s in world.samples if s.task.job == "split"]
    assert sum(s.records_in["sentences"] for s in split) == len(TEXT)
    assert sum(s.records_out["words"] for s in split) == sum(expected.values())
    assert all(s.bytes_in > 0 and s.stages for s in split if s.records_in["sentences"])
