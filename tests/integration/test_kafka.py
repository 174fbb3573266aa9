"""Jobs on a real Kafka broker and real Spark: at least once, measured, and healed where Kafka fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from confluent_kafka import TopicPartition as Place
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from integration.copying import copy_job, ids, lose_tail, reshard_in_the_middle, rows, with_tasks
from integration.kafka_worlds import kafka_bus
from penstock import job, topic, with_metadata
from penstock.model.errors import ConflictError, EnvironmentProblem, MissingError
from penstock.model.records import Record
from services.broker import Broker
from worlds import INTERVAL, World, place

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def test_topic_to_job_to_topic_is_exact_and_measured(kafka: World, prefix: str) -> None:
    kafka.run(lambda: copy_job(prefix))
    kafka.produce(f"{prefix}.in", rows(0, 3000))
    kafka.settle()
    assert ids(kafka, f"{prefix}.out") == list(range(3000))
    assert sum(s.records_in[f"{prefix}.in"] for s in kafka.samples) == 3000
    assert sum(s.records_out[f"{prefix}.out"] for s in kafka.samples) == 3000
    assert all(s.bytes_in > 0 and s.stages for s in kafka.samples if s.records_in[f"{prefix}.in"])


def test_progress_is_a_consumer_group(kafka: World, prefix: str) -> None:
    kafka.run(lambda: copy_job(prefix))
    kafka.produce(f"{prefix}.in", rows(0, 100))
    kafka.settle()
    ends = kafka.topics.end_offsets([f"{prefix}.in"])
    assert kafka.topics.progress(f"{prefix}-copy", [f"{prefix}.in"]) == ends
    assert {r.reader for r in kafka.topics.readers(f"{prefix}.in")} == {f"{prefix}-copy"}


def test_threads_change_live_and_small_partitions_share_a_spark_partition(kafka: World, prefix: str) -> None:
    kafka.run(lambda: copy_job(prefix))
    produced = 0
    for threads in (8, 3, 1, 7):
        kafka.host.set_threads(f"{prefix}-copy", threads)
        seen = len(kafka.samples)
        produced += kafka.produce(f"{prefix}.in", rows(produced, produced + 400))
        kafka.until(lambda seen=seen: len(kafka.samples) > seen)
        kafka.settle()
    assert ids(kafka, f"{prefix}.out") == list(range(produced))
    used = {(s.threads, s.stages[0].spark_tasks) for s in kafka.samples if s.records_in[f"{prefix}.in"] > 50}
    assert {(8, 8), (3, 3), (1, 1), (7, 7)} <= used


def test_records_without_key_or_value_and_bad_ones(kafka: World, prefix: str) -> None:
    def declare() -> None:
        source = topic(f"{prefix}.in", schema="id long", partitions=2)
        target = topic(f"{prefix}.out", schema="id long, keyed boolean")

        @job(name=f"{prefix}-meta", reads=with_metadata(source), writes=target, trigger=INTERVAL)
        def meta(rows):
            return rows.selectExpr("id", "_key is not null as keyed")

    kafka.run(declare)
    kafka.topics.append(
        f"{prefix}.in",
        [
            Record(None, b'{"id": 1}', 1),
            Record(b"k", b'{"id": 2}', 2),
            Record(b"k", None, 3),
            Record(b"", b"{oh", 4),
        ],
    )
    kafka.settle()
    found = sorted((row["id"], row["keyed"]) for row in kafka.rows(f"{prefix}.out"))
    assert found == [(1, False), (2, True)]
    letters = kafka.stored(f"{prefix}.in.dead")
    assert sorted((r.record.key, r.record.value) for r in letters) == [(b"", b"{oh"), (b"k", None)]
    reasons = [dict(r.record.headers)["penstock.reason"].decode() for r in letters]
    assert any("value is null" in reason for reason in reasons)
    assert any("not a JSON object" in reason for reason in reasons)


def test_several_topics_in_and_out(kafka: World, prefix: str) -> None:
    def declare() -> None:
        left, right = topic(f"{prefix}.l", schema="id long"), topic(f"{prefix}.r", schema="id long")
        even, odd = topic(f"{prefix}.even", schema="id long"), topic(f"{prefix}.odd", schema="id long")

        @job(name=f"{prefix}-part", reads=[left, right], writes=[even, odd], trigger=INTERVAL)
        def part(a, b):
            both = a.union(b)
            return {even.name: both.where("id % 2 = 0"), odd.name: both.where("id % 2 = 1")}

    kafka.run(declare)
    kafka.produce(f"{prefix}.l", rows(0, 200))
    kafka.produce(f"{prefix}.r", rows(200, 300))
    kafka.settle()
    assert ids(kafka, f"{prefix}.even") == list(range(0, 300, 2))
    assert ids(kafka, f"{prefix}.odd") == list(range(1, 300, 2))


def test_a_drained_job_resumes_exactly(kafka: World, prefix: str) -> None:
    codes = kafka.run(lambda: copy_job(prefix))
    kafka.produce(f"{prefix}.in", rows(0, 500))
    kafka.until(lambda: bool(kafka.samples))
    assert kafka.host.drain(30.0)
    kafka.produce(f"{prefix}.in", rows(500, 700))
    kafka.restart(codes)
    kafka.settle()
    assert ids(kafka, f"{prefix}.out") == list(range(700))


def test_a_lost_checkpoint_tail_loses_nothing(kafka: World, prefix: str) -> None:
    codes = kafka.run(lambda: copy_job(prefix, max_records_per_batch=100))
    kafka.produce(f"{prefix}.in", rows(0, 1000))
    kafka.settle()
    kafka.host.drain(30.0)
    lost = lose_tail(kafka, f"{prefix}-copy", 1)
    kafka.produce(f"{prefix}.in", rows(1000, 1100))
    kafka.restart(codes)
    kafka.settle()
    found = ids(kafka, f"{prefix}.out")
    assert sorted(set(found)) == list(range(1100))
    assert lost == 1 and len(found) - 1100 <= 100


def test_resharding_loses_nothing_and_doubles_at_most_the_last_batches(kafka: World, prefix: str) -> None:
    codes = kafka.run(lambda: copy_job(prefix, max_records_per_batch=100))
    produced = reshard_in_the_middle(kafka, codes, prefix)
    found = ids(kafka, f"{prefix}.out")
    assert sorted(set(found)) == list(range(produced))
    assert len(found) - produced <= 100 + 3 * 100


def test_a_topic_that_goes_away_is_a_sentence(kafka: World, prefix: str) -> None:
    kafka.run(lambda: copy_job(prefix))
    kafka.produce(f"{prefix}.in", rows(0, 10))
    kafka.settle()
    kafka.topics.delete(f"{prefix}.in")
    kafka.until(lambda: any(e.kind == "failed" for e in kafka.events))
    text = next(e for e in kafka.events if e.kind == "failed").text
    assert f"There is no topic '{prefix}.in'" in text and "create it first" in text


def test_another_number_of_partitions_is_a_sentence(kafka: World, prefix: str) -> None:
    kafka.topics.create(f"{prefix}.in", 7)
    with pytest.raises(ConflictError, match="has 7 partitions and was asked for with 4"):
        kafka.run(lambda: copy_job(prefix))


def test_settings_of_a_topic_that_is_there_stay(kafka: World, prefix: str) -> None:
    kafka.topics.create(f"{prefix}.in", 4, {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.5"})
    kafka.run(lambda: copy_job(prefix))
    assert kafka.topics.describe(f"{prefix}.in").config["cleanup.policy"] == "compact"


def test_unread_records_that_retention_took_are_a_sentence(
    kafka: World, kafka_broker: Broker, prefix: str
) -> None:
    codes = kafka.run(lambda: copy_job(prefix))
    kafka.produce(f"{prefix}.in", rows(0, 100))
    kafka.settle()
    kafka.host.drain(30.0)
    kafka.produce(f"{prefix}.in", rows(100, 300))
    end = kafka.topics.end_offsets([f"{prefix}.in"])[place(f"{prefix}.in", 0)]
    admin = AdminClient({"bootstrap.servers": kafka_broker.servers})
    for future in admin.delete_records([Place(f"{prefix}.in", 0, end - 5)]).values():
        future.result()
    kafka.restart(codes)
    kafka.until(lambda: any(e.kind == "failed" for e in kafka.events))
    text = next(e for e in kafka.events if e.kind == "failed").text
    assert f"of {prefix}.in/0 are gone unread" in text and "retention" in text
    assert len(ids(kafka, f"{prefix}.out")) == 100
    kafka.host.stop()
    kafka.events.clear()
    with pytest.raises(MissingError, match="are gone unread"):  # another layout begins where the group stands
        kafka.restart([with_tasks(codes[0], 2)])


def test_a_broker_that_goes_away_and_comes_back(
    hasty_kafka: World, kafka_broker: Broker, prefix: str
) -> None:
    hasty_kafka.run(lambda: copy_job(prefix))
    hasty_kafka.produce(f"{prefix}.in", rows(0, 500))
    hasty_kafka.settle()
    kafka_broker.kill()
    try:
        hasty_kafka.until(lambda: any(e.kind == "failed" for e in hasty_kafka.events), 90)
    finally:
        kafka_broker.start()
    text = next(e for e in hasty_kafka.events if e.kind == "failed").text
    assert "did not answer" in text and "starts again" not in text
    assert next(e for e in hasty_kafka.events if e.kind == "retry").text.endswith("starts again in 1 s.")
    hasty_kafka.until(lambda: hasty_kafka.host.state(f"{prefix}-copy") == "running", 90)
    hasty_kafka.produce(f"{prefix}.in", rows(500, 900))
    hasty_kafka.settle()
    assert sorted(set(ids(hasty_kafka, f"{prefix}.out"))) == list(range(900))


def test_sparks_own_source_reads_where_ours_does_not_fit(
    spark: SparkSession, kafka_broker: Broker, tmp_path: Path, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.spark.kafka.lacking", lambda session: "NoSuchMethodError KafkaOffsetRange")
    world = World(spark, tmp_path, kafka_bus(kafka_broker))
    codes = world.run(lambda: copy_job(prefix, threads=3, max_records_per_batch=200, exactly_once=True))
    world.produce(f"{prefix}.in", rows(0, 1000))
    world.topics.append(f"{prefix}.in", [Record(None, b"{oh", 1)])
    world.settle()
    notice = next(e.text for e in world.events if e.kind == "notice")
    assert "NoSuchMethodError" in notice and "only when a task starts again" in notice
    assert ids(world, f"{prefix}.out") == list(range(1000))
    assert len(world.stored(f"{prefix}.in.dead")) == 1
    assert sum(s.records_in[f"{prefix}.in"] for s in world.samples) == 1001
    assert len([s for s in world.samples if s.records_in[f"{prefix}.in"]]) >= 5
    assert world.topics.progress(f"{prefix}-copy", [f"{prefix}.in"]) == world.topics.end_offsets(
        [f"{prefix}.in"]
    )
    world.host.set_threads(f"{prefix}-copy", 6)
    world.host.stop()
    world.produce(f"{prefix}.in", rows(1000, 1200))
    world.restart(codes)
    world.settle()
    assert ids(world, f"{prefix}.out") == list(range(1200))
    world.close()
    world.topics.close()


def test_a_connector_that_does_not_fit_may_be_refused(
    spark: SparkSession, kafka_broker: Broker, prefix: str, monkeypatch: pytest.MonkeyPatch, kafka: World
) -> None:
    monkeypatch.setattr("penstock.spark.kafka.lacking", lambda session: "NoSuchMethodError KafkaOffsetRange")
    (code,) = kafka.declare(lambda: copy_job(prefix))
    with pytest.raises(EnvironmentProblem, match=r"cannot be planned from here .*NoSuchMethodError"):
        kafka_bus(kafka_broker, read_by="penstock").prepare(spark, code.spec)


def test_without_the_connector_a_sentence_says_what_to_run(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parent.parent / "children" / "no_connector.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "EnvironmentProblem: Kafka's connector is not among this session's jars" in done.stdout, (
        done.stderr
    )
    assert "penstock kafka-jars" in done.stdout
