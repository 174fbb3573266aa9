"""Bad input of every kind: kept, counted, named; the job goes on unless it asked to stop."""

from __future__ import annotations

import json

import pytest

from penstock import job, topic
from penstock.model.errors import SpecError
from penstock.model.records import Record
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark


def copy_job(on_bad_record: str = "dead_letter") -> None:
    source = topic("in", schema="id long, name string", partitions=2, on_bad_record=on_bad_record)
    target = topic("out", schema="id long, name string", key="id", partitions=2)

    @job(reads=source, writes=target, trigger=INTERVAL)
    def copy(rows):
        return rows


def put(world: World, *values: bytes | None) -> None:
    world.topics.append("in", [Record(None, value, 0) for value in values])


def test_what_does_not_parse_goes_to_the_dead_letter_topic_with_its_reason(world: World) -> None:
    world.run(copy_job)
    put(world, b'{"id": 1, "name": "a"}', b"{not json", None, b'{"id": "x"}', b"[]", b'{"id": 2}')
    world.settle()
    assert sorted(row["id"] for row in world.rows("out")) == [1, 2]
    letters = world.stored("in.dead")
    assert sorted(str(s.record.value) for s in letters) == sorted(
        str(v) for v in (b"{not json", None, b'{"id": "x"}', b"[]")
    )
    for stored in letters:
        headers = dict(stored.record.headers)
        assert b"value is" in headers["penstock.reason"]
        assert headers["penstock.source"].startswith(b"in/")
    assert world.host.counts("copy")[1] == 4


def test_a_topic_may_ask_to_stop_instead(world: World) -> None:
    world.run(lambda: copy_job("fail"))
    put(world, b'{"id": 1}', b"{broken")
    world.until(lambda: any(e.kind == "failed" for e in world.events))
    failure = next(e for e in world.events if e.kind == "failed")
    assert "topic in: value is not a JSON object" in failure.text and "offset" in failure.text
    assert world.rows("out") == []


def test_null_keys_and_ten_megabyte_records_pass(world: World) -> None:
    world.run(copy_job)
    big = json.dumps({"id": None, "name": "x" * (10 << 20)}).encode()
    put(world, big, b'{"name": "small"}')
    world.settle()
    stored = world.stored("out")
    assert sorted(len(json.loads(s.record.value)["name"]) for s in stored) == [5, 10 << 20]
    assert all(s.record.key is None for s in stored)


def test_a_udf_that_raises_is_shown_with_the_owners_line_and_tried_again(world: World) -> None:
    def declare() -> None:
        source = topic("in", schema="id long, name string", partitions=1)
        target = topic("out", schema="id long", partitions=1)

        @job(reads=source, writes=target, trigger=INTERVAL)
        def parse(rows):
            from pyspark.sql.functions import udf

            @udf("long")
            def strict(name):
                return 100 // len(name)  # the owner's mistake: an empty name

            return rows.select(strict("name").alias("id"))

    world.run(declare)
    put(world, b'{"id": 1, "name": "ab"}')
    world.settle()
    put(world, b'{"id": 1, "name": ""}')
    world.until(lambda: sum(e.kind == "failed" for e in world.events) >= 2)
    failure = next(e for e in world.events if e.kind == "failed")
    assert "ZeroDivisionError" in failure.text and "test_bad_input.py:" in failure.text
    assert "Traceback" in failure.details
    assert failure.text.endswith(".")
    pauses = [e.text for e in world.events if e.kind == "retry"]
    assert pauses == ["parse-0 starts again in 1 s.", "parse-0 starts again in 2 s."]
    assert [row["id"] for row in world.rows("out")] == [50]
    assert world.host.state("parse") == "restarting"


@pytest.mark.parametrize(
    ("columns", "select", "said"),
    [
        ("id long, extra int", "id", "lacks the column 'extra'"),
        ("id long", "id, name", "column that the topic does not have"),
        ("id int", "cast(name as double) as id", "is not the topic's int"),
        ("id long", "nothing", "asks for the column 'nothing', which is not there"),
    ],
)
def test_a_schema_mismatch_is_said_before_anything_runs(
    world: World, columns: str, select: str, said: str
) -> None:
    def declare() -> None:
        source = topic("in", schema="id long, name string", partitions=1)
        target = topic("out", schema=columns, partitions=1)

        @job(reads=source, writes=target, trigger=INTERVAL)
        def change(rows):
            return rows.selectExpr(*select.split(", "))

    with pytest.raises(SpecError, match=said) as caught:
        world.run(declare)
    assert "test_bad_input.py:" in str(caught.value)
    assert not list((world.folder / "checkpoints").rglob("commits"))


def test_offsets_of_a_deleted_topic_are_refused_by_name(world: World) -> None:
    codes = world.run(copy_job)
    put(world, *[b'{"id": 1}'] * 5)
    world.settle()
    world.host.stop()
    world.topics.delete("in")
    world.topics.create("in", 2)
    world.restart(codes)
    world.until(lambda: any(e.kind == "failed" for e in world.events))
    text = next(e for e in world.events if e.kind == "failed").text
    assert "in" in text and "made anew" in text


def test_a_codec_whose_module_is_missing_is_refused_in_a_sentence(world: World) -> None:
    def declare() -> None:
        source = topic("in", schema="id long", codec="avro", partitions=1)
        target = topic("out", schema="id long", partitions=1)

        @job(reads=source, writes=target, trigger=INTERVAL)
        def copy(rows):
            return rows

    with pytest.raises(SpecError, match=r"needs Spark's Avro module.*spark\.packages"):
        world.run(declare)
