"""kill -9 of the whole container, at random moments and at chosen steps, often in a row: the output is exact."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from integration.kafka_worlds import written_ever
from penstock.adapters.kafka import KafkaTopics
from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.faults import COMMIT_POINTS
from penstock.adapters.log.upkeep import UpkeepSettings
from penstock.model.records import Record
from penstock.ports.topics import Topics
from processes import Started
from services.broker import Broker
from services.fixtures import connector_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]

CHILD = Path(__file__).parent.parent / "children" / "crashing.py"
TRANSACTION_POINTS = ("begin", "sent", "committed")
ROUNDS = 20
AHEAD = 4_000
"""Records that the slowest job has before it at the start of each round: more than it can do until it is killed."""
JOBS = ("copy", "count", "draw")
SWEEPS_ALL = UpkeepSettings(grace_seconds=0.0, orphan_age_seconds=0.0, orphan_seconds=0.0)


@dataclass(frozen=True)
class Moment:
    """When to kill a container: so long after it said a word, or at a step that it reaches."""

    word: str = ""
    """Empty: it was told to begin."""
    delay_seconds: float = 0.0
    step: str = ""

    @property
    def options(self) -> list[str]:
        return ["--die", self.step] if self.step else []


class Trial:
    """Known input on one kind of topics, and what containers made of it."""

    def __init__(self, topics: Topics, prefix: str, command: list[str]) -> None:
        self.topics, self.prefix, self._command = topics, prefix, command
        self.produced = 0
        self.told: list[str] = []
        """What containers said of failures; kills alone must bring none."""
        topics.create(f"{prefix}.in", 4)

    def behind(self) -> int:
        """Records that the slowest job has not done."""
        topic = f"{self.prefix}.in"  # which transactions of the dead are still open on
        progress = [self.topics.progress(f"{self.prefix}-{job}", [topic], stable=False) for job in JOBS]
        return self.produced - min(sum(held.values()) for held in progress)

    def top_up(self) -> None:
        more = range(self.produced, self.produced + max(AHEAD - self.behind(), 0))
        self.topics.append(
            f"{self.prefix}.in", [Record(None, json.dumps({"id": i}).encode(), i) for i in more]
        )
        self.produced += len(more)

    @contextmanager
    def container(self, *options: str) -> Generator[Started]:
        """One that gets ready, waits for a line to begin, and is gone with the block."""
        made = Started([*self._command, *options])
        try:
            yield made
        finally:
            made.kill()
            self.told += [line for line in made.lines if line.startswith(("FAILED", "FENCED", "Traceback"))]

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
            yield Moment(("MOVING", "READY", "MOVING", "")[turn % 4], rng.uniform(0.0, 1.0))
        elif number % 3 == 1:
            yield Moment(step=f"{steps[turn % len(steps)]}:{rng.randint(1, 12)}")
        else:
            yield Moment(step=f"{rng.choice(steps)}:1")


def end(container: Started, moment: Moment) -> int:
    """Kill a container at its moment, unless it ends before; how it ended."""
    if moment.step:
        return container.end()
    if moment.word:
        container.until(lambda line: line == moment.word)
    with suppress(subprocess.TimeoutExpired):
        container.end(moment.delay_seconds)
    return container.kill()


def kill_at_all(trial: Trial, planned: Sequence[Moment]) -> int:
    """Kill one container after the other, the next already waiting; how many died with work left."""
    killed = 0
    with ExitStack() as open_now:
        following = open_now.enter_context(trial.container(*planned[0].options))
        for number, moment in enumerate(planned):
            trial.top_up()
            container = following
            container.say("begin")
            if number + 1 < len(planned):
                following = open_now.enter_context(trial.container(*planned[number + 1].options))
            code, left = end(container, moment), trial.behind()
            print(f"{moment}: ended with {code} and {left} records left, said {container.lines}")
            killed += code == -signal.SIGKILL and left > 0
    return killed


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
        topics = EmbeddedLog(tmp_path / "log", durable=False, upkeep=SWEEPS_ALL)
    trial = Trial(topics, prefix, command)
    planned = list(moments(random.Random(seed), TRANSACTION_POINTS if broker else COMMIT_POINTS))
    killed = kill_at_all(trial, planned)
    done_between_kills = trial.produced - trial.behind()
    with trial.container("--finish") as last:
        last.say("begin")
        assert last.end() == 0, last.lines
    assert killed == ROUNDS and done_between_kills > 0 and not trial.told, (seed, killed, trial.told[:5])
    if isinstance(topics, EmbeddedLog):  # what writers left that died before their commit
        assert sum(topics.maintain().deleted_files for _ in range(3)) > 0 and not list(topics.verify())
    copied = Counter(row["id"] for row in trial.rows("copied"))
    records = Counter(range(trial.produced))
    assert Counter({i: n for i, n in copied.items() if i >= 0}) == records, seed
    assert max(copied.values()) == 1 and min(copied) >= -trial.produced, seed
    assert trial.counts("counted") == Counter(i % 7 for i in records), seed
    assert sum(trial.counts("drawn").values()) == trial.produced, seed
    if broker is not None:  # some died inside a transaction
        assert len(written_ever(broker, f"{prefix}.copied")) > copied.total(), seed
    assert not list((tmp_path / "checkpoints").rglob("*.tmp"))
    topics.close()
