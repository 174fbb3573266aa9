"""What the tests of jobs on Kafka share: a bus, a job that copies, and damage to a checkpoint."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from penstock import job, topic
from penstock.adapters.kafka import KafkaTopics
from penstock.spark.frames import JobCode
from penstock.spark.kafka import KafkaBus
from services.broker import Broker
from worlds import INTERVAL, World


def kafka_bus(broker: Broker, **options: Any) -> KafkaBus:
    """A bus that gives up soon."""
    client = {
        "bootstrap.servers": broker.servers,
        "delivery.timeout.ms": "6000",
        "request.timeout.ms": "2000",
    }
    return KafkaBus(KafkaTopics(broker.servers, timeout_seconds=10.0), client, **options)


def copy_job(prefix: str, **options: object) -> None:
    source = topic(f"{prefix}.in", schema="id long", partitions=4)
    target = topic(f"{prefix}.out", schema="id long", partitions=3)

    @job(name=f"{prefix}-copy", reads=source, writes=target, **{"trigger": INTERVAL, **options})
    def copy(rows):
        return rows


def rows(start: int, end: int) -> list[dict[str, int]]:
    return [{"id": i} for i in range(start, end)]


def ids(world: World, name: str) -> list[int]:
    return sorted(row["id"] for row in world.rows(name))


def with_tasks(code: JobCode, tasks: int) -> JobCode:
    """The same job in another layout."""
    options = code.spec.options.model_copy(update={"tasks": tasks, "threads": tasks})
    return replace(code, spec=code.spec.model_copy(update={"options": options}))


def lose_tail(world: World, name: str, batches: int) -> int:
    """Remove the newest batches from a checkpoint, as a power cut may; how many were there to lose."""
    (checkpoint,) = (world.folder / "checkpoints" / name).glob("g1/0")
    newest = sorted(int(p.name) for p in (checkpoint / "offsets").iterdir() if p.name.isdigit())[-batches:]
    for folder in ("offsets", "commits"):
        for batch in newest:
            (checkpoint / folder / str(batch)).unlink()
    return len(newest)
