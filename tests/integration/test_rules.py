"""The rules for source, sink and runner on real Spark, each broken once before it was a rule."""

from __future__ import annotations

import json
import math
import threading
import time

import pytest

from integration.copying import copy_job, ids, lose_tail, reshard_in_the_middle, rows
from penstock import job, topic
from penstock.model.errors import ConflictError
from penstock.model.ids import Fence, TaskId
from worlds import INTERVAL, World, counted

pytestmark = pytest.mark.spark


def test_threads_change_at_every_batch_and_the_output_is_exact(world: World) -> None:
    world.run(lambda: copy_job(trigger=0.05))
    produced = 0
    for round_ in range(50):
        world.host.set_threads("copy", (1, 7, 3, 8, 2)[round_ % 5])
        produced += world.produce("in", rows(produced, produced + 40))
        seen = len(world.samples)
        world.until(lambda seen=seen: len(world.samples) > seen)
    world.settle()
    assert ids(world) == list(range(produced))
    used = {s.threads for s in world.samples}
    assert used == {1, 2, 3, 7, 8}
    assert any(stage.spark_tasks == 8 for s in world.samples for stage in s.stages)


def test_a_thread_change_reaches_the_next_batch(world: World) -> None:
    world.run(copy_job)
    world.produce("in", rows(0, 100))
    world.settle()
    before = max(s.batch_id for s in world.samples)
    world.host.set_threads("copy", 5)
    world.produce("in", rows(100, 200))
    world.settle()
    next_batch = next(s for s in world.samples if s.batch_id == before + 1)
    assert next_batch.threads == 5 and next_batch.stages[0].spark_tasks == 5


def test_drain_ends_at_a_batch_edge_and_resumes_exactly(world: World) -> None:
    codes = world.run(copy_job)
    world.produce("in", rows(0, 1000))
    world.until(lambda: bool(world.samples))
    assert world.host.drain(30.0)
    (task,) = world.host.tasks("copy")
    assert task.state == "drained" and task.at_edge()
    world.produce("in", rows(1000, 1500))
    world.restart(codes)
    world.settle()
    assert ids(world) == list(range(1500))


def test_many_drains_under_load_leave_nothing_unfinished(world: World) -> None:
    codes = world.run(copy_job)
    stop = threading.Event()
    produced = 0

    def load() -> None:
        nonlocal produced
        while not stop.is_set():
            produced += world.produce("in", rows(produced, produced + 50))
            time.sleep(0.02)

    thread = threading.Thread(target=load)
    thread.start()
    try:
        for _ in range(5):
            seen = len(world.samples)
            world.until(lambda seen=seen: len(world.samples) >= seen + 2)
            assert world.host.drain(30.0)
            (task,) = world.host.tasks("copy")
            assert task.state == "drained" and task.at_edge()
            world.restart(codes)
    finally:
        stop.set()
        thread.join()
    world.settle()
    assert ids(world) == list(range(produced))


def test_resharding_a_stateless_job_under_load_loses_and_doubles_nothing(world: World) -> None:
    codes = world.run(copy_job)
    produced = reshard_in_the_middle(world, codes)
    assert ids(world) == list(range(produced))


def test_an_older_run_is_fenced_and_ends_for_good(world: World) -> None:
    world.run(copy_job)
    world.produce("in", rows(0, 10))
    world.settle()
    world.bus.open(TaskId("copy", 0), Fence(1, 99))
    world.produce("in", rows(10, 20))
    world.until(lambda: world.host.state("copy") == "fenced")
    event = next(e for e in world.events if e.kind == "fenced")
    assert "newer one has taken over" in event.text
    world.turn()
    assert ids(world) == list(range(10)) and world.host.state("copy") == "fenced"


def test_a_failed_task_whose_place_was_taken_does_not_take_it_back(world: World) -> None:
    """Each start raises the task's epoch, so one try too many would be newer than who took over."""
    source, target = topic("in", schema="id long", partitions=1), topic("out", schema="id long", partitions=1)

    def declare() -> None:
        @job(name="picky", reads=source, writes=target, trigger=INTERVAL)
        def picky(rows):
            return rows.selectExpr("cast(raise_error('never') as long) as id")

    world.run(declare)
    world.produce("in", rows(0, 1))
    world.until(lambda: any(e.kind == "retry" for e in world.events))
    world.bus.open(TaskId("picky", 0), Fence(1, 4))
    world.until(lambda: any(e.kind == "fenced" for e in world.events))
    for hours in range(1, 6):
        world.events += world.host.tick(time.time() + hours * 3600.0)
    assert world.host.state("picky") == "fenced"
    assert [e.kind for e in world.events][-1] == "fenced"
    world.bus.open(TaskId("picky", 0), Fence(1, 4))  # which still may


def test_a_lost_checkpoint_tail_plans_the_same_batches_again(world: World) -> None:
    codes = world.run(lambda: copy_job(max_records_per_batch=100))
    world.produce("in", rows(0, 1000))
    world.settle()
    world.host.drain(30.0)
    assert lose_tail(world, "copy", 3) == 3
    world.produce("in", rows(1000, 1200))
    world.restart(codes)
    world.settle()
    assert ids(world) == list(range(1200))


def test_a_limit_in_bytes_alone_bounds_each_batch(world: World) -> None:
    world.topics.create("in", 4)
    world.produce("in", rows(0, 600))
    records = 40
    most = math.ceil(records * world.bus.record_bytes("in"))

    def declare() -> None:
        source = topic("in", schema="id long", partitions=4)

        @job(reads=source, writes=topic("all", schema="id long"), trigger=INTERVAL)
        def free(rows):
            return rows

        @job(reads=source, writes=topic("some", schema="id long"), trigger=INTERVAL, max_bytes_per_batch=most)
        def bound(rows):
            return rows

    world.run(declare)
    world.settle()
    assert ids(world, "all") == ids(world, "some") == list(range(600))
    largest = {
        name: max(s.records_in["in"] for s in world.samples if s.task.job == name)
        for name in ("free", "bound")
    }
    assert largest["bound"] == records < largest["free"]
    assert all(s.bytes_in <= 1.1 * most for s in world.samples if s.task.job == "bound")


def test_swapped_inputs_are_refused_by_name(world: World) -> None:
    def declare(swapped: bool) -> None:
        left, right = topic("left", schema="id long"), topic("right", schema="id long")
        both = topic("both", schema="id long")

        @job(reads=[right, left] if swapped else [left, right], writes=both, trigger=INTERVAL)
        def merge(a, b):
            return a.union(b)

    world.run(lambda: declare(False))
    world.produce("left", rows(0, 10))
    world.produce("right", rows(10, 20))
    world.settle()
    assert ids(world, "both") == list(range(20))
    world.restart(world.declare(lambda: declare(True)))
    world.until(lambda: any(e.kind == "failed" for e in world.events))
    text = next(e for e in world.events if e.kind == "failed").text
    assert "merge/left/0" in text and "merge/right/0" in text and "old order" in text


def test_a_job_that_reads_one_topic_twice_sees_one_end(world: World) -> None:
    def declare() -> None:
        source = topic("in", schema="id long", partitions=2)
        target = topic("out", schema="id long", partitions=2)

        @job(reads=[source, source], writes=target, trigger=INTERVAL)
        def twice(a, b):
            return a.union(b)

    world.run(declare)
    produced = 0
    while len(world.samples) < 10:  # records come while the two reads ask, one after the other
        produced += world.produce("in", rows(produced, produced + 5))
        world.turn()
        assert not [e.text for e in world.events if e.kind == "failed"]
    world.settle()
    assert counted(ids(world)) == dict.fromkeys(range(produced), 2)
    (checkpoint,) = (world.folder / "checkpoints" / "twice").glob("g1/0")
    batches = [p.read_text().splitlines()[2:] for p in (checkpoint / "offsets").iterdir() if p.name.isdigit()]
    ends = [[json.loads(end)["offsets"] for end in batch] for batch in batches]
    assert len(ends) >= 10 and all(first == second for first, second in ends)


def test_several_outputs_are_one_query_and_one_commit(world: World) -> None:
    def declare() -> None:
        source = topic("in", schema="id long", partitions=2)
        even, odd = topic("even", schema="id long"), topic("odd", schema="id long", codec="json")

        @job(reads=source, writes=[even, odd], trigger=INTERVAL)
        def part(rows):
            return {"even": rows.where("id % 2 = 0"), "odd": rows.where("id % 2 = 1")}

    world.run(declare)
    world.produce("in", rows(0, 300))
    world.settle()
    assert ids(world, "even") == list(range(0, 300, 2))
    assert ids(world, "odd") == list(range(1, 300, 2))
    assert sum(s.records_in["in"] for s in world.samples) == 300
    assert sum(s.records_out["odd"] for s in world.samples) == 150


def test_a_job_that_keeps_state_is_refused_in_another_number_of_tasks(world: World) -> None:
    def declare(tasks: int) -> None:
        source = topic("in", schema="id long", partitions=4, key="id")
        target = topic("out", schema="id long, count long", partitions=2, key="id")

        @job(reads=source, writes=target, trigger=INTERVAL, mode="update", tasks=tasks, threads=tasks)
        def count(rows):
            return rows.groupBy("id").count()

    world.run(lambda: declare(2))
    world.produce("in", rows(0, 10), key="id")
    world.settle()
    with pytest.raises(ConflictError, match=r"keeps state in 2 tasks and cannot run in 3.*penstock reset"):
        world.restart(world.declare(lambda: declare(3)))
    assert world.host.threads() == {}
    world.restart(world.declare(lambda: declare(2)))
    world.produce("in", rows(0, 10), key="id")
    world.settle()
    assert world.latest("out", "id", "count") == dict.fromkeys(range(10), 2)


def test_a_topic_that_is_deleted_under_its_reader_stops_it_with_a_sentence(world: World) -> None:
    world.run(copy_job)
    world.produce("in", rows(0, 10))
    world.settle()
    world.topics.delete("in")
    world.until(lambda: any(e.kind == "failed" for e in world.events))
    assert "'in'" in next(e for e in world.events if e.kind == "failed").text
    assert world.host.state("copy") in ("failed", "restarting")
    world.topics.create("in", 4)
    world.until(lambda: any("made anew or restored" in e.text for e in world.events))
    assert ids(world) == list(range(10))


def test_order_per_key_is_kept_where_the_job_asks(world: World) -> None:
    def declare() -> None:
        source = topic("in", schema="key string, id long", key="key", partitions=4)
        target = topic("out", schema="key string, id long, first long", key="key", partitions=4)

        @job(reads=source, writes=target, trigger=INTERVAL, ordered=True, threads=3)
        def stamp(rows):
            def run(batches):
                import pandas as pd

                for batch in batches:
                    frame = batch.to_pandas()
                    frame["first"] = frame.groupby("key")["id"].transform("first")
                    yield __import__("pyarrow").RecordBatch.from_pandas(
                        pd.DataFrame(frame), preserve_index=False
                    )

            return rows.mapInArrow(run, "key string, id long, first long")

    world.run(declare)
    world.produce("in", [{"key": f"k{i % 20}", "id": i} for i in range(2000)], key="key")
    world.settle()
    for info in world.topics.describe("out").partitions:
        newest: dict[str, int] = {}
        for stored in world.topics.read(info.place, 0, 10_000):
            row = json.loads(stored.record.value or b"{}")
            assert newest.get(row["key"], -1) < row["id"]
            newest[row["key"]] = row["id"]


def test_available_now_takes_what_is_there_and_ends(world: World) -> None:
    codes = world.declare(lambda: copy_job(max_records_per_batch=150))
    world.topics.create("in", 4)
    world.produce("in", rows(0, 1000))
    for code in codes:
        world.host.add(code, world.bus, available_now=True)
    world.produce("in", rows(1000, 1100))
    world.until(lambda: world.host.state("copy") == "stopped")
    done = ids(world)
    assert done[:1000] == list(range(1000)) or len(done) >= 1000
    assert max(s.records_in["in"] for s in world.samples) <= 150
    assert len([s for s in world.samples if s.records_in["in"]]) >= 7


def test_queries_leave_no_threads_or_planners_behind(world: World) -> None:
    codes = world.run(copy_job)
    world.produce("in", rows(0, 10))
    world.settle()
    before = threading.active_count()
    for _ in range(10):
        world.restart(codes)
        world.produce("in", rows(0, 1))
        world.settle()
    assert threading.active_count() <= before + 2
