"""kill -9 of the whole container, at random moments and at chosen steps, often in a row: the output is exact."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.kafka_worlds import written_ever
from penstock.adapters.kafka import KafkaTopics
from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.faults import COMMIT_POINTS
from penstock.model.records import Record
from penstock.ports.topics import Topics
from services.broker import Broker
from services.fixtures import connector_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

CHILD = Path(__file__).parent.parent / "children" / "crashing.py"
TRANSACTION_POINTS = ("begin", "sent", "committed")
ROUNDS = 20
AHEAD = 4_000
"""Records that the slowest job has before it at the start of each round: more than it can do until it is killed."""
JOBS = ("copy", "count", "draw")


@dataclass(frozen=True)
class Moment:
    """When to kill a container: so long after it said a word, or at a step that it reaches."""

    word: str = "READY"
    delay_seconds: float = 0.0
    step: str = ""


class World:
    """Known input on one kind of topics, and what containers made of it."""

    def __init__(self, topics: Topics, prefix: str, command: list[str]) -> None:
        self.topics, self.prefix, self._command = topics, prefix, command
        self.produced = 0
        self.told: list[str] = []
        """What containers said of failures; kills alone must bring none."""
        topics.create(f"{prefix}.in", 4)

    def behind(self) -> int:
        """Records that the slowest job has not done."""
        progress = [self.topics.progress(f"{self.prefix}-{job}") for job in JOBS]
        return self.produced - min(sum(held.values()) for held in progress)

    def top_up(self) -> None:
        more = range(self.produced, self.produced + max(AHEAD - self.behind(), 0))
        self.topics.append(
            f"{self.prefix}.in", [Record(None, json.dumps({"id": i}).encode(), i) for i in more]
        )
        self.produced += len(more)

    def run(self, *options: str, kill: Moment | None = None) -> int:
        """Run a container until it has ended, or is killed; how it ended."""
        child = subprocess.Popen(
            [*self._command, *options],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        lines: list[str] = []
        said = threading.Event()

        def read() -> None:
            assert child.stdout is not None
            for line in child.stdout:
                lines.append(line.rstrip())
                if kill is not None and line.startswith(kill.word):
                    said.set()
            said.set()

        reader = threading.Thread(target=read, daemon=True)
        reader.start()
        try:
            if kill is not None and not kill.step:
                assert said.wait(120), lines
                with suppress(subprocess.TimeoutExpired):
                    child.wait(kill.delay_seconds)
            else:
                child.wait(180)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait(30)
        reader.join(10)
        self.told += [line for line in lines if line.startswith(("FAILED", "FENCED", "Traceback"))]
        return child.returncode

    def rows(self, topic: str) -> Iterator[dict[str, Any]]:
        for info in self.topics.describe(f"{self.prefix}.{topic}").partitions:
            for stored in self.topics.read(info.place, 0, 1_000_000):
                yield json.loads(stored.record.value or b"")

    def counts(self, topic: str) -> dict[int, int]:
        """A topic of counts as the table it stands for."""
        table: dict[int, int] = {}
        for row in self.rows(topic):
            assert row["n"] > table.get(row["k"], 0), f"a count went back or came twice: {row}"
            table[row["k"]] = row["n"]
        return table


def moments(rng: random.Random, steps: tuple[str, ...]) -> Iterator[Moment]:
    """By turns: any moment, a chosen step, and at once again while what that one left behind is done anew."""
    for number in range(ROUNDS):
        turn = number // 3
        if number % 3 == 0:
            yield Moment(("MOVING", "READY", "MOVING", "STARTING")[turn % 4], rng.uniform(0.0, 1.0))
        elif number % 3 == 1:
            yield Moment(step=f"{steps[turn % len(steps)]}:{rng.randint(1, 12)}")
        else:
            yield Moment(step=f"{rng.choice(steps)}:1")


@pytest.mark.parametrize("kind", ["log", pytest.param("kafka", marks=pytest.mark.kafka)])
def test_killed_twenty_times_the_output_is_exact(
    kind: str, tmp_path: Path, prefix: str, request: pytest.FixtureRequest
) -> None:
    seed = int(os.environ.get("PENSTOCK_SEED", time.time_ns() % 1_000_000))
    print(f"seed {seed}")
    command = [sys.executable, str(CHILD), str(tmp_path), prefix]
    broker: Broker | None = request.getfixturevalue("kafka_broker") if kind == "kafka" else None
    if broker is not None:
        command += ["--servers", broker.servers, "--jars", ",".join(map(str, connector_jars()))]
        topics: Topics = KafkaTopics(broker.servers)
    else:
        topics = EmbeddedLog(tmp_path / "log", durable=False)
    world = World(topics, prefix, command)
    killed = 0
    for moment in moments(random.Random(seed), TRANSACTION_POINTS if broker else COMMIT_POINTS):
        world.top_up()
        started = time.monotonic()
        code = world.run(*(["--die", moment.step] if moment.step else []), kill=moment)
        in_the_middle = code == -signal.SIGKILL and world.behind() > 0
        print(f"{moment}: {code}, {world.behind()} behind, {time.monotonic() - started:.1f} s")
        killed += in_the_middle
    done_between_kills = world.produced - world.behind()
    assert world.run("--finish") == 0, world.told
    assert killed == ROUNDS and done_between_kills > 0 and not world.told, (seed, killed, world.told[:5])
    copied = Counter(row["id"] for row in world.rows("copied"))
    records = Counter(range(world.produced))
    assert Counter({i: n for i, n in copied.items() if i >= 0}) == records, seed
    assert max(copied.values()) == 1 and min(copied) >= -world.produced, seed
    assert world.counts("counted") == Counter(i % 7 for i in records), seed
    assert sum(world.counts("drawn").values()) == world.produced, seed
    if broker is not None:  # some died inside a transaction
        assert len(written_ever(broker, f"{prefix}.copied")) > copied.total(), seed
    assert not list((tmp_path / "checkpoints").rglob("*.tmp"))
    topics.close()
