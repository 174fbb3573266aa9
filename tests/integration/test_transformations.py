"""Whatever PySpark can do between two streams, a job can do between two topics: one of each kind, with exact output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from pyspark.sql import functions as F  # noqa: N812  as all of Spark's users write it
from pyspark.sql.functions import pandas_udf, udf

from penstock import job, sink, source, topic, with_metadata
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def numbers(n: int) -> list[dict[str, Any]]:
    return [{"id": i} for i in range(n)]


def run_one(world: World, function: Callable[[Any], Any], columns: str, **options: Any) -> None:
    """One job from `in` (id long) to `out`."""

    def declare() -> None:
        given, target = (
            topic("in", schema="id long", partitions=2),
            topic("out", schema=columns, partitions=1),
        )
        job(reads=given, writes=target, name="j", trigger=INTERVAL, **options)(function)

    world.run(declare)


def test_sql_text(world: World) -> None:
    def declare() -> None:
        given, target = topic("in", schema="id long"), topic("out", schema="double long")
        job(
            reads=given,
            writes=target,
            name="j",
            trigger=INTERVAL,
            sql="select id * 2 as double from in where id % 2 = 0",
        )

    world.run(declare)
    world.produce("in", numbers(20))
    world.settle()
    assert sorted(row["double"] for row in world.rows("out")) == [2 * i for i in range(0, 20, 2)]


def test_every_kind_of_udf_in_one_job(world: World) -> None:
    @udf("long")
    def plain(n: int) -> int:
        return n + 1

    @pandas_udf("long")
    def vectorised(n: pd.Series) -> pd.Series:
        return n * 10

    def in_pandas(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for frame in frames:
            yield frame.assign(pandas=frame["id"] + 100)

    def in_arrow(batches: Iterator[Any]) -> Iterator[Any]:
        yield from batches

    def every(rows: Any) -> Any:
        wide = rows.mapInPandas(in_pandas, "id long, pandas long")
        wide = wide.mapInArrow(in_arrow, "id long, pandas long")
        return wide.select("id", "pandas", plain("id").alias("plain"), vectorised("id").alias("vectorised"))

    run_one(world, every, "id long, pandas long, plain long, vectorised long")
    world.produce("in", numbers(50))
    world.settle()
    found = sorted((r["id"], r["pandas"], r["plain"], r["vectorised"]) for r in world.rows("out"))
    assert found == [(i, i + 100, i + 1, i * 10) for i in range(50)]


def events(world: World, *seconds: float) -> None:
    world.produce(
        "in", [{"id": i, "at": (NOON + timedelta(seconds=s)).isoformat()} for i, s in enumerate(seconds)]
    )


def test_windows_are_written_once_when_their_watermark_has_passed(world: World) -> None:
    def declare() -> None:
        given = topic("in", schema="id long, at timestamp", event_time="at", watermark="5s", partitions=1)
        target = topic("out", schema="start timestamp, n long", partitions=1)

        @job(reads=given, writes=target, trigger=INTERVAL, state_partitions=2)
        def per_window(rows):
            counted = rows.groupBy(F.window("at", "10 seconds")).count()
            return counted.select(F.col("window.start").alias("start"), F.col("count").alias("n"))

    world.run(declare)
    events(world, 1, 2, 9, 11, 12)
    world.settle()
    events(world, 40)
    world.settle()
    events(world, 41)
    world.until(lambda: len(world.rows("out")) >= 2)
    assert sorted(row["n"] for row in world.rows("out")) == [2, 3]


def test_duplicates_are_dropped_across_batches(world: World) -> None:
    run_one(world, lambda rows: rows.dropDuplicates(["id"]), "id long", state_partitions=2)
    for _ in range(3):
        world.produce("in", numbers(30))
        world.settle()
    assert sorted(row["id"] for row in world.rows("out")) == list(range(30))


def test_streams_are_joined(world: World) -> None:
    def declare() -> None:
        left = topic("left", schema="id long, l long", partitions=2)
        right = topic("right", schema="id long, r long", partitions=2)
        target = topic("out", schema="id long, l long, r long", partitions=2)

        @job(reads={"a": left, "b": right}, writes=target, trigger=INTERVAL, state_partitions=2)
        def join(a, b):
            return a.join(b, "id")

    world.run(declare)
    world.produce("left", [{"id": i, "l": i + 1} for i in range(40)])
    world.settle()
    world.produce("right", [{"id": i, "r": i + 2} for i in range(20, 60)])
    world.settle()
    assert sorted((r["id"], r["l"], r["r"]) for r in world.rows("out")) == [
        (i, i + 1, i + 2) for i in range(20, 40)
    ]


def test_a_stream_is_joined_with_a_table(world: World, tmp_path: Path) -> None:
    (tmp_path / "names.csv").write_text("".join(f"{i},n{i}\n" for i in range(10)))

    def declare() -> None:
        given = topic("in", schema="id long", partitions=2)
        names = source("csv", schema="id long, name string", static=True, path=str(tmp_path / "names.csv"))
        target = topic("out", schema="id long, name string", partitions=2)

        @job(reads=[given, names], writes=target, trigger=INTERVAL)
        def name(rows, names):
            return rows.join(names, "id")

    world.run(declare)
    world.produce("in", numbers(15))
    world.settle()
    assert sorted((r["id"], r["name"]) for r in world.rows("out")) == [(i, f"n{i}") for i in range(10)]


def test_state_of_the_owners_own(world: World) -> None:
    from pyspark.sql.streaming import StatefulProcessor

    class Count(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.total = handle.getValueState("total", "n long")

        def handleInputRows(self, key: Any, rows: Any, timers: Any) -> Iterator[pd.DataFrame]:
            before = self.total.get()[0] if self.total.exists() else 0
            now = before + sum(len(frame) for frame in rows)
            self.total.update((now,))
            yield pd.DataFrame({"k": [key[0]], "n": [now]})

        def close(self) -> None:
            """Nothing to let go of."""

    def count(rows: Any) -> Any:
        keyed = rows.selectExpr("id % 3 as k").groupBy("k")
        return keyed.transformWithStateInPandas(
            statefulProcessor=Count(), outputStructType="k long, n long", outputMode="Update", timeMode="None"
        )

    run_one(world, count, "k long, n long", mode="update", state_partitions=2)
    for _ in range(2):
        world.produce("in", numbers(30))
        world.settle()
    assert world.latest("out", "k", "n") == {0: 20, 1: 20, 2: 20}


def test_a_job_may_write_files(world: World, tmp_path: Path) -> None:
    def declare() -> None:
        given = topic("in", schema="id long", partitions=2)

        @job(reads=given, writes=sink("parquet", path=str(tmp_path / "files")), trigger=INTERVAL)
        def keep(rows):
            return rows

    world.run(declare)
    world.produce("in", numbers(100))
    world.until(lambda: sum(s.records_in["in"] for s in world.samples) == 100)
    held = world.spark.read.schema("id long").parquet(str(tmp_path / "files"))
    assert sorted(row.id for row in held.collect()) == list(range(100))


def test_a_job_may_call_a_function_for_each_batch_and_resumes_after_it(world: World) -> None:
    taken: list[int] = []

    def take(frame: Any, batch_id: int) -> None:
        taken.extend(row.id for row in frame.collect())

    def declare() -> None:
        given = topic("in", schema="id long", partitions=2)

        @job(reads=given, writes=sink(foreach_batch=take), trigger=INTERVAL)
        def hand_over(rows):
            return rows.where("id % 2 = 0")

    codes = world.run(declare)
    world.produce("in", numbers(40))
    world.settle()
    assert world.topics.progress("hand_over", ["in"]) == world.topics.end_offsets(["in"])
    world.host.drain(30.0)
    world.produce("in", [{"id": 100}])
    world.restart(codes)
    world.settle()
    assert Counter(taken) == Counter([*range(0, 40, 2), 100])


def test_a_job_may_read_another_source(world: World) -> None:
    def declare() -> None:
        target = topic("out", schema="value long", partitions=2)

        @job(reads=source("rate", rowsPerSecond=50), writes=target, trigger=INTERVAL)
        def copy(rows):
            return rows.select("value")

    world.run(declare)
    world.until(lambda: len(world.rows("out")) >= 20)
    values = sorted(row["value"] for row in world.rows("out"))
    assert values == list(range(len(values)))


def test_metadata_of_records_can_be_read(world: World) -> None:
    def declare() -> None:
        given = topic("in", schema="id long", partitions=2)
        target = topic("out", schema="id long, place int, at long", partitions=1)

        @job(reads=with_metadata(given), writes=target, trigger=INTERVAL)
        def place(rows):
            return rows.selectExpr("id", "_partition as place", "_offset as at")

    world.run(declare)
    world.produce("in", numbers(10))
    world.settle()
    found = {(r["place"], r["at"]): r["id"] for r in world.rows("out")}
    stored = {
        (s.place.partition, s.offset): i
        for s in world.stored("in")
        for i in [found[s.place.partition, s.offset]]
    }
    assert found == stored and sorted(found.values()) == list(range(10))
