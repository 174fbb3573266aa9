"""Exactly-once output on Kafka: transactions, zombies, and kill -9 at every step of a commit."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from integration.kafka_worlds import copy_job, ids, kafka_bus, lose_tail, rows, with_tasks
from penstock.adapters.kafka import KafkaTopics
from penstock.model.errors import EnvironmentProblem, FencedError, SpecError
from penstock.model.ids import Fence, TaskId, TopicPartition
from penstock.model.records import Record
from services.broker import Broker
from services.fixtures import connector_jars
from worlds import World

pytestmark = [pytest.mark.spark, pytest.mark.kafka]

CHILD = Path(__file__).parent.parent / "children" / "crashing_kafka.py"
RECORDS = 2_000


def exactly_once(prefix: str, **options: object) -> None:
    copy_job(prefix, exactly_once=True, **options)


def uncommitted(broker: Broker, topic: str) -> list[bytes]:
    """All that ever reached a topic, also what its readers never see."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker.servers,
            "group.id": "tests",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    partitions = consumer.list_topics(topic, 10).topics[topic].partitions
    consumer.assign([Place(topic, p, 0) for p in partitions])
    found: list[bytes] = []
    ended = 0
    while ended < len(partitions):
        for message in consumer.consume(1000, 5.0):
            if message.error():
                ended += 1
            else:
                found.append(message.value())
    consumer.close()
    return found


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
    produced = 0
    for tasks in (3, 2):
        produced += kafka.produce(f"{prefix}.in", rows(produced, produced + 600))
        seen = len(kafka.samples)
        kafka.until(lambda seen=seen: len(kafka.samples) > seen)
        kafka.host.stop()  # in the middle: a batch may be in flight
        codes = [with_tasks(codes[0], tasks)]
        kafka.restart(codes)
    kafka.settle()
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


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_killed_at_every_step_the_output_is_exact(kafka_broker: Broker, tmp_path: Path, prefix: str) -> None:
    topics = KafkaTopics(kafka_broker.servers)
    topics.create(f"{prefix}.in", 4)
    topics.append(f"{prefix}.in", [Record(None, json.dumps({"id": i}).encode(), i) for i in range(RECORDS)])
    for point in ("sent:2", "committed:1", "sent:1", ""):
        lines = run_child(tmp_path, kafka_broker, prefix, point)
        told = [line for line in lines if line.startswith(("FAILED", "FENCED", "Traceback"))]
        assert not told and ("DONE" in lines) == (not point), (point, lines[-10:])
    copied = Counter(
        json.loads(stored.record.value or b"")["id"]
        for info in topics.describe(f"{prefix}.copied").partitions
        for stored in topics.read(info.place, 0, 1_000_000)
    )
    assert max(copied.values()) == 1
    assert set(range(0, RECORDS, 2)) <= set(copied) <= set(range(RECORDS))
    assert (
        len(uncommitted(kafka_broker, f"{prefix}.copied")) > copied.total()
    )  # some died inside a transaction
    assert sum(latest(topics, f"{prefix}.drawn").values()) == RECORDS
    topics.close()


def latest(topics: KafkaTopics, topic: str) -> dict[int, int]:
    """A topic of counts as a table; a count never goes back and is never written twice."""
    table: dict[int, int] = {}
    for info in topics.describe(topic).partitions:
        for stored in topics.read(info.place, 0, 1_000_000):
            row = json.loads(stored.record.value or b"")
            table[row["k"]] = row["n"]
    return table


def run_child(folder: Path, broker: Broker, prefix: str, point: str) -> list[str]:
    """Run the container until it kills itself at a point, or is done."""
    jars = ",".join(map(str, connector_jars()))
    command = [
        sys.executable,
        str(CHILD),
        str(folder),
        broker.servers,
        prefix,
        jars,
        *([point] if point else []),
    ]
    done = subprocess.run(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        timeout=120,
        check=False,
    )
    return done.stdout.splitlines()
