"""What the tests of jobs on Kafka share: a bus, and all that was ever written to a topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as Place

from penstock.adapters.kafka import KafkaTopics
from penstock.spark.kafka import KafkaBus
from services.broker import Broker

HASTY = {"delivery.timeout.ms": "6000", "request.timeout.ms": "2000"}
"""For outages, which are then over soon: on a busy machine a broker that is well may take longer than this."""


def kafka_bus(broker: Broker, client: Mapping[str, str] | None = None, **options: Any) -> KafkaBus:
    settings = {"bootstrap.servers": broker.servers, **(client or {})}
    return KafkaBus(
        KafkaTopics(broker.servers, timeout_seconds=10.0 if client else 60.0), settings, **options
    )


def written_ever(broker: Broker, topic: str) -> list[bytes]:
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
