"""Services that whole commands are tried against."""

from __future__ import annotations

from services.fixtures import kafka_broker as kafka_broker
