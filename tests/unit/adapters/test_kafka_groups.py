"""What a group's offsets are recorded with: one consumer for all who record, and never after it had no answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.adapters.kafka.client import Connection
from penstock.adapters.kafka.cluster import Cluster
from penstock.adapters.kafka.groups import Groups
from penstock.model.errors import EnvironmentProblem
from penstock.model.ids import TopicPartition

kafka = pytest.importorskip("confluent_kafka")
FIRST, SECOND = TopicPartition("in", 0), TopicPartition("in", 1)


class Consumer:
    """A consumer that answers each call as its test says."""

    made: list[Consumer]
    answer: Callable[[Consumer, list[Any]], None]

    def __init__(self, config: dict[str, Any]) -> None:
        self.tell, self.closed = config["on_commit"], False
        self.waiting: list[tuple[Any, list[Any]]] = []
        Consumer.made.append(self)

    def committed(self, places: list[Any], timeout: float) -> list[Any]:
        """It finds the group's broker by that."""
        self._check()
        return places

    def commit(self, *, offsets: list[Any], asynchronous: bool) -> None:
        self._check()
        Consumer.answer(self, offsets)

    def poll(self, timeout: float) -> None:
        self._check()
        if self.waiting:
            self.tell(*self.waiting.pop(0))

    def close(self) -> None:
        self.closed = True

    def _check(self) -> None:
        if self.closed:
            raise RuntimeError("Consumer closed")


@pytest.fixture(autouse=True)
def consumers(monkeypatch: pytest.MonkeyPatch) -> list[Consumer]:
    Consumer.made = []
    monkeypatch.setattr(kafka, "Consumer", Consumer)
    return Consumer.made


def groups(timeout_seconds: float) -> Groups:
    connection = Connection("nowhere:1", timeout_seconds=timeout_seconds)
    return Groups(cast("Cluster", SimpleNamespace(connection=connection, missing=lambda error, topic: None)))


def entry(place: TopicPartition, error: Any = None) -> Any:
    return SimpleNamespace(topic=place.topic, partition=place.partition, error=error)


def answer_well(consumer: Consumer, offsets: list[Any]) -> None:
    consumer.waiting.append((None, [SimpleNamespace(topic=o.topic, error=None) for o in offsets]))


def test_who_waits_for_a_consumer_that_had_no_answer_takes_another(consumers: list[Consumer]) -> None:
    asked = threading.Event()
    recorded: list[tuple[Consumer, list[int]]] = []

    def answer(consumer: Consumer, offsets: list[Any]) -> None:
        recorded.append((consumer, [o.offset for o in offsets]))
        if consumer is not consumers[0]:
            answer_well(consumer, offsets)
        asked.set()

    Consumer.answer = answer
    held = groups(0.3)
    failures: list[BaseException] = []

    def record(place: TopicPartition, offset: int) -> None:
        try:
            held.set_offsets("job", {place: offset})
        except BaseException as error:  # noqa: BLE001  whatever it is, it is looked at below
            failures.append(error)

    first = threading.Thread(target=record, args=(FIRST, 5))
    first.start()
    assert asked.wait(10.0)
    second = threading.Thread(target=record, args=(SECOND, 7))
    second.start()
    for thread in (first, second):
        thread.join(10.0)
    (failure,) = failures
    assert isinstance(failure, EnvironmentProblem) and "did not answer" in str(failure)
    assert recorded == [(consumers[0], [5]), (consumers[1], [7])]
    held.close()


def test_a_late_answer_is_not_taken_for_the_next_calls(consumers: list[Consumer]) -> None:
    Consumer.answer = lambda consumer, offsets: None
    held = groups(0.05)
    with pytest.raises(EnvironmentProblem):
        held.set_offsets("job", {FIRST: 5})
    consumers[0].tell(None, [entry(FIRST)])
    with pytest.raises(EnvironmentProblem):
        held.set_offsets("job", {FIRST: 6})
    assert len(consumers) == 2


@pytest.mark.parametrize("name", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS"])
@pytest.mark.parametrize("per_partition", [True, False])
def test_a_coordinator_that_is_not_ready_is_asked_again(
    name: str, per_partition: bool, consumers: list[Consumer]
) -> None:
    error = kafka.KafkaError(getattr(kafka.KafkaError, name))
    calls: list[int] = []

    def answer(consumer: Consumer, offsets: list[Any]) -> None:
        calls.append(len(offsets))
        if len(calls) < 3:
            found = [entry(FIRST, error if per_partition else None), entry(SECOND)]
            consumer.waiting.append((None if per_partition else error, found))
        else:
            answer_well(consumer, offsets)

    Consumer.answer = answer
    groups(10.0).set_offsets("job", {FIRST: 5, SECOND: 6})
    assert calls == [2, 2, 2] and len(consumers) == 1


def test_what_a_partition_is_refused_for_is_said_at_once() -> None:
    refused = kafka.KafkaError(kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED)
    Consumer.answer = lambda consumer, offsets: consumer.waiting.append((None, [entry(FIRST, refused)]))
    with pytest.raises(EnvironmentProblem, match="refused"):
        groups(10.0).set_offsets("job", {FIRST: 5})
