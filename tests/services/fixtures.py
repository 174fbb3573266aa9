"""Fixtures that hand out services; a conftest that wants one imports it from here."""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import sha256
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

import pytest

from penstock.app.kafka_jars import fetch_kafka_jars, tried_set
from penstock.model.errors import EnvironmentProblem
from services.broker import Broker, NoBroker, broker_jars


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running Kafka broker, shared by all tests of the session: use topic names of your own."""
    try:
        broker = Broker(broker_jars(), tmp_path_factory.mktemp("kafka"))
    except NoBroker as why:
        skip_or_fail(why)
    broker.start()
    yield broker
    broker.stop()


def connector_jars() -> tuple[Path, ...]:
    """The jars of Kafka's connector, fetched once into the user's cache folder."""
    key = sha256(f"{tried_set()} {metadata.version('pyspark')}".encode()).hexdigest()[:12]
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock" / f"kafka-{key}"
    if not folder.is_dir():
        with TemporaryDirectory(dir=_made(folder.parent)) as name:
            try:
                fetch_kafka_jars(Path(name) / "jars", lambda text: None)
            except EnvironmentProblem as problem:
                raise NoBroker(str(problem)) from problem
            if not folder.is_dir():  # another run may have been faster
                (Path(name) / "jars").rename(folder)
    return tuple(sorted(folder.glob("*.jar")))


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def skip_or_fail(why: NoBroker) -> NoReturn:
    """A machine without Maven skips what needs Kafka; CI must not."""
    if os.environ.get("CI") == "true":
        pytest.fail(str(why))
    pytest.skip(str(why))
