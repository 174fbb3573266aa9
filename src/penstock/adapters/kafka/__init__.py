"""Topics of a Kafka cluster, through the optional package confluent-kafka."""

from penstock.adapters.kafka.topics import KafkaTopics

__all__ = ["KafkaTopics"]
