"""Exactly-once output on Kafka: transactions, lost checkpoints, zombies, and faults on the way of a commit."""

from __future__ import annotations

import pytest

from integration.copying import copy_job, ids, lose_tail, reshard_in_the_middle, rows
from integration.kafka_worlds import kafka_bus
from penstock.model.errors import EnvironmentProblem, FencedError, SpecError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.records import Record
from services.broker import Broker
from worlds import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def exactly_once(prefix: str, **options: object) -> None:
    copy_job(prefix, exactly_once=True, **options)


def places(world: World, topic: str) -> list[TopicPartition]:
    return [p.place for p in world.topics.describe(topic).partitions]


def test_it_is_exact_and_its_progress_is_in_the_same_transaction(kafka: World, prefix: str) -> None:
    kafka.run(lambda: exactly_once(prefix))
    kafka.produce(f"{prefix}.in", rows(0, 1000))
    kafka.topics.append(f"{prefix}.in", [Record(b"k", b"{oh", 7, (("h", None),))], 2)
    kafka.settle()
    assert ids(kafka, f"{prefix}.out") == list(range(1000))
    (letter,) = kafka.stored(f"{prefix}.in.dead")
    assert (letter.place.partition, letter.record.key, letter.record.value) == (2, b"k", b"{oh")
    assert dict(letter.record.headers)["penstock.source"].startswith(f"{prefix}.in/2@".encode())
    assert kafka.topics.progress(f"{prefix}-copy", [f"{prefix}.in"]) == kafka.topics.end_offsets(
        [f"{prefix}.in"]
    )
    assert sum(s.records_out[f"{prefix}.out"] for s in kafka.samples) == 1000


def test_a_lost_checkpoint_tail_writes_nothing_twice(kafka: World, prefix: str) -> None:
    codes = kafka.run(lambda: exactly_once(prefix, max_records_per_batch=100))
    kafka.produce(f"{prefix}.in", rows(0, 1000))
    kafka.settle()
    kafka.host.drain(30.0)
    assert lose_tail(kafka, f"{prefix}-copy", 3) == 3
    kafka.produce(f"{prefix}.in", rows(1000, 1150))
    kafka.restart(codes)
    kafka.settle()
    assert ids(kafka, f"{prefix}.out") == list(range(1150))


def test_resharding_writes_nothing_twice(kafka: World, prefix: str) -> None:
    codes = kafka.run(lambda: exactly_once(prefix, max_records_per_batch=100))
    produced = reshard_in_the_middle(kafka, codes, prefix)
    assert ids(kafka, f"{prefix}.out") == list(range(produced))


def test_a_zombie_of_an_older_generation_is_refused(kafka: World, kafka_broker: Broker, prefix: str) -> None:
    (code,) = kafka.run(lambda: exactly_once(prefix))
    kafka.produce(f"{prefix}.in", rows(0, 10))
    kafka.settle()
    other = kafka_bus(kafka_broker).prepare(kafka.spark, code.spec)
    mine = places(kafka, f"{prefix}.in")
    other.open(
        TaskId(code.spec.name, 1), Fence(2, 1), mine[1:2]
    )  # a task of the next layout takes one partition
    kafka.produce(f"{prefix}.in", rows(10, 30))
    kafka.until(lambda: kafka.host.state(code.spec.name) == "fenced", 40)
    event = next(e for e in kafka.events if e.kind == "fenced")
    assert "a newer one has taken over" in event.text and "generation 2" in event.text
    assert ids(kafka, f"{prefix}.out") == list(range(10))
    with pytest.raises(FencedError, match="generation 2"):
        other.open(TaskId(code.spec.name, 0), Fence(1, 99), mine)
    other.close(TaskId(code.spec.name, 1), Fence(2, 1))


def test_a_commit_that_failed_on_the_way_is_found_or_made(kafka: World, prefix: str) -> None:
    steps: list[str] = []

    def faults(step: str) -> None:
        steps.append(step)
        if steps.count(step) == 2 and step in ("sent", "committed"):
            raise EnvironmentProblem(f"a fault at {step}, made by this test")

    kafka.bus.faults = faults  # type: ignore[attr-defined]
    kafka.run(lambda: exactly_once(prefix, max_records_per_batch=50))
    kafka.produce(f"{prefix}.in", rows(0, 400))
    kafka.until(lambda: sum(e.kind == "restarted" for e in kafka.events) >= 2)
    kafka.settle()
    assert ids(kafka, f"{prefix}.out") == list(range(400))


def test_a_job_without_an_input_topic_is_refused(kafka: World, prefix: str) -> None:
    from penstock import job, source, topic

    def declare() -> None:
        target = topic(f"{prefix}.out", schema="value long")

        @job(name=f"{prefix}-rate", reads=source("rate"), writes=target, exactly_once=True)
        def rate(rows):
            return rows.select("value")

    with pytest.raises(SpecError, match="exactly_once = True needs an input topic"):
        kafka.run(declare)
