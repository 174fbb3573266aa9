"""Topics on Kafka after their broker was away: all that worked before works again, with the clients of before."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable

import pytest

from penstock.adapters.kafka import KafkaTopics
from penstock.model.errors import EnvironmentProblem
from penstock.model.ids import TopicPartition
from penstock.model.records import Record
from services.broker import Broker

pytestmark = pytest.mark.kafka


def within(seconds: float, ask: Callable[[], object]) -> object:
    """Ask until it is answered."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return ask()
        except EnvironmentProblem:
            if time.monotonic() > deadline:
                raise


def test_progress_may_be_asked_for_while_a_broker_starts(kafka_broker: Broker) -> None:
    """A broker that has just started says that it coordinates no group yet: librdkafka's admin client dies of that."""
    name = f"t-{uuid.uuid4().hex[:8]}"
    topics, places = KafkaTopics(kafka_broker.servers, timeout_seconds=3.0), [TopicPartition(name, 0)]
    topics.create(name, 1)
    topics.commit_progress(name, {places[0]: 1})
    for _ in range(3):
        kafka_broker.kill()
        kafka_broker.start()
        for _ in range(20):
            assert within(30.0, lambda: topics.progress(name, [name])) == {places[0]: 1}
            assert within(30.0, lambda: topics.marked_progress(name, places)) == {places[0]: (1, "")}
    topics.close()


def test_everything_is_answered_again_after_an_outage(kafka_broker: Broker) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    topics, place = KafkaTopics(kafka_broker.servers, timeout_seconds=3.0), TopicPartition(name, 0)
    topics.create(name, 1)
    topics.append(name, [Record(None, b"1", 1)])
    topics.commit_progress(f"r-{name}", {place: 1})
    kafka_broker.kill()
    try:
        with pytest.raises(EnvironmentProblem, match="did not answer within 3 s"):
            topics.commit_progress(f"r-{name}", {place: 0})
        with pytest.raises(EnvironmentProblem, match="did not answer within 3 s"):
            topics.end_offsets([name])
    finally:
        kafka_broker.start()
    assert within(30.0, lambda: topics.end_offsets([name])) == {place: 1}
    within(30.0, lambda: topics.append(name, [Record(None, b"2", 2)]))
    within(30.0, lambda: topics.commit_progress(f"r-{name}", {place: 2}))
    assert within(30.0, lambda: topics.progress(f"r-{name}", [name])) == {place: 2}
    assert [r.record.value for r in topics.read(place, 0, 10)] == [b"1", b"2"]
    topics.close()
