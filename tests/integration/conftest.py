"""One Spark session for all tests of the process, and small worlds to run jobs in."""

from __future__ import annotations

import os
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from integration.kafka_worlds import HASTY, kafka_bus
from penstock.spark.kafka import KafkaBus
from penstock.spark.session import ContainerSettings, start_session
from services.broker import Broker, NoBroker
from services.fixtures import connector_jars, skip_or_fail
from worlds import World


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    work = tmp_path_factory.mktemp("container")
    try:
        jars = connector_jars()
    except NoBroker:  # who needs them says so
        jars = ()
    settings = ContainerSettings(
        work=work, slots=8, heap="1g", jars=jars, conf={"spark.sql.streaming.metricsEnabled": "false"}
    )
    session = start_session(settings)
    yield session
    session.stop()


@pytest.fixture
def world(spark: SparkSession, tmp_path: Path) -> Iterator[World]:
    """Topics in a log of their own, jobs in a host of their own, on the shared session."""
    made = World(spark, tmp_path)
    yield made
    made.close()


@pytest.fixture
def prefix() -> str:
    """Names of a test's own on the shared broker."""
    return f"t{uuid.uuid4().hex[:8]}"


@pytest.fixture
def kafka(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> Iterator[World]:
    """The same on a real broker."""
    with _on_kafka(spark, tmp_path, kafka_bus(kafka_broker)) as made:
        yield made


@pytest.fixture
def hasty_kafka(spark: SparkSession, kafka_broker: Broker, tmp_path: Path) -> Iterator[World]:
    """One that gives up soon when the broker does not answer."""
    with _on_kafka(spark, tmp_path, kafka_bus(kafka_broker, HASTY)) as made:
        yield made


@contextmanager
def _on_kafka(spark: SparkSession, folder: Path, bus: KafkaBus) -> Generator[World]:
    try:
        connector_jars()
    except NoBroker as why:
        skip_or_fail(why)
    made = World(spark, folder, bus)
    yield made
    made.close()
    bus.topics.close()


@pytest.fixture(autouse=True, scope="session")
def _quiet_threads() -> None:
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "ARROW_NUM_THREADS"):
        os.environ.setdefault(name, "1")
