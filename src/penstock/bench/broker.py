"""A Kafka broker for the time of a benchmark, and the connector's jars; where there can be none, why."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.model.errors import PenstockError
from penstock.ports.services import Services
from penstock.spark.trials.broker import Broker, NoBroker, broker_jars


@dataclass(frozen=True, slots=True)
class KafkaPlace:
    """Where Kafka is."""

    servers: str
    jars: tuple[Path, ...]
    """Of Spark's connector."""

    def as_json(self) -> dict[str, object]:
        """As a trial takes it."""
        return {"servers": self.servers, "jars": [str(jar) for jar in self.jars]}


@contextmanager
def kafka_place(
    services: Services, work: Path, progress: Callable[[str], None]
) -> Generator[KafkaPlace | str]:
    """A broker while the block runs, or the sentence that says why there is none."""
    try:
        jars = tuple(services.kafka_jars(work / "jars", lambda text: None))
        broker = Broker(broker_jars(), work / "broker")
        progress("starting a Kafka broker")
        broker.start()
    except (NoBroker, PenstockError, RuntimeError, ImportError) as why:
        yield str(why)
        return
    try:
        yield KafkaPlace(broker.servers, jars)
    finally:
        broker.stop()
