"""What all tests share: one Kafka broker; Hypothesis judges results, never how long a busy machine took for one."""

from __future__ import annotations

from hypothesis import settings

from services.fixtures import kafka_broker as kafka_broker

settings.register_profile("penstock", deadline=None)
settings.load_profile("penstock")
