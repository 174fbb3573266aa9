"""The kinds of topics that the contracts are held against."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.adapters.memory import MemoryTopics
from penstock.ports.topics import Topics
from services.broker import Broker


@pytest.fixture(params=["memory", "log", pytest.param("kafka", marks=pytest.mark.kafka)])
def topics(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Topics]:
    """One kind of topics, empty."""
    found: Topics
    if request.param == "memory":
        found = MemoryTopics()
    elif request.param == "log":
        found = EmbeddedLog(tmp_path / "log")
    else:
        from penstock.adapters.kafka import KafkaTopics

        broker: Broker = request.getfixturevalue("kafka_broker")
        found = KafkaTopics(broker.servers)
        for name in found.topics():
            found.delete(name)
    yield found
    found.close()
