"""Progress that stands in a transaction: who asks is told when it is decided, and never that there is none."""

from __future__ import annotations

import uuid

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka import TopicPartition as Place

from penstock.adapters.kafka import KafkaTopics
from penstock.model.errors import EnvironmentProblem
from penstock.model.ids import TopicPartition
from penstock.model.records import Record
from services.broker import Broker

pytestmark = pytest.mark.kafka


@pytest.mark.parametrize("commits", [True, False])
def test_progress_that_is_pending_is_waited_for(kafka_broker: Broker, commits: bool) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    reader, place = f"r-{name}", TopicPartition(name, 0)
    topics = KafkaTopics(kafka_broker.servers, timeout_seconds=2.0)
    topics.create(name, 1)
    topics.append(name, [Record(None, b"%d" % i, 1) for i in range(9)])
    topics.commit_progress(reader, {place: 1})
    client = {"bootstrap.servers": kafka_broker.servers}
    producer = Producer({**client, "transactional.id": name})
    group = Consumer({**client, "group.id": reader})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.send_offsets_to_transaction([Place(name, 0, 5)], group.consumer_group_metadata(), 30)
    with pytest.raises(EnvironmentProblem):
        topics.progress(reader, [name])
    with pytest.raises(EnvironmentProblem):
        topics.marked_progress(reader, [place])
    assert topics.progress(reader, [name], stable=False) == {place: 1}
    assert [r.offset for r in topics.readers(name) if r.reader == reader] == [1]
    assert topics.marked_progress(reader, [place], stable=False) == {place: (1, "")}
    (producer.commit_transaction if commits else producer.abort_transaction)(30)
    assert topics.progress(reader, [name]) == {place: 5 if commits else 1}
    group.close()
    topics.close()
