"""The embedded log beside Spark's Parquet files and beside Kafka: rows per second, and what a small batch costs.

All queries are written by hand and measured by Spark's own progress, so that sources and sinks are compared and nothing
else. Rows are a key and a value of a hundred bytes. Written: from Spark's generator. Read: to nowhere, past a predicate
that touches each value. End to end: from the one to the same. The log syncs its files and commits to disk, as it does by
default; Parquet files and Kafka do not, so it is measured without that too. Turns alternate; a row is the median of its
turns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from penstock.bench.broker import KafkaPlace, kafka_place
from penstock.bench.children import Progress, run_child
from penstock.bench.managed import span_rate
from penstock.bench.rows import Goal, compare, skip
from penstock.bench.turns import alternate
from penstock.ports.services import Services

AHEAD = Goal(1.0, "higher")
SMALL = Goal(1.2)
RECORDS, BATCHES, QUICK_BATCHES = 200_000, 8, 4
TURNS, QUICK_TURNS = 3, 1
SMALL_BATCHES, QUICK_SMALL = 80, 30
THREADS = 2
PEERS = {"parquet": "Spark's Parquet files", "kafka": "Kafka, Spark's source and sink"}
STEPS = ("written", "read", "end to end")
DEFAULT_MANAGER = (
    "org.apache.spark.sql.execution.streaming.checkpointing.FileContextBasedCheckpointFileManager"
)


class LogBench:
    """`penstock bench spark --only log`."""

    name = "log"
    describe = (
        "the embedded log beside Parquet files and Kafka: rows per second, and what a small batch costs"
    )

    def __init__(self, services: Services) -> None:
        self._services = services

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]:
        given: dict[str, object] = {
            "batches": QUICK_BATCHES if quick else BATCHES,
            "turns": QUICK_TURNS if quick else TURNS,
            "small": QUICK_SMALL if quick else SMALL_BATCHES,
        }
        with TemporaryDirectory(prefix="penstock-bench-") as name:
            folder = Path(name)
            with kafka_place(self._services, folder / "kafka", progress) as place:
                if isinstance(place, KafkaPlace):
                    given |= place.as_json()
                else:
                    progress(f"left out: {place}")
                found = run_child("log_speed", folder / "trial", given, progress)
        return rows_of(found)


def rows_of(found: Mapping[str, Mapping[str, float]]) -> list[Mapping[str, object]]:
    """From rows per second by system and step, and milliseconds of small batches."""
    rows: list[Mapping[str, object]] = []
    for ours, step, (system, peer) in product(("log", "log, unsynced"), STEPS, PEERS.items()):
        name, goal = f"{ours}, {step}", AHEAD if system == "parquet" else None
        if system in found:
            row = compare(name, "rows/s", found[ours][step], (peer, found[system][step]), goal)
        else:
            row = skip(name, "rows/s", peer, goal)
        rows.append(row.as_row())
    small = found["small"]
    for key, peer, goal in (
        ("rate", "Spark's rate source to nowhere, our checkpoints", SMALL),
        ("rate, default", "the same, Spark's default checkpoints", None),
    ):
        for ours in ("log", "log, unsynced"):
            name = f"small batch, {ours} to {ours}"
            held = goal if ours == "log" else None
            rows.append(compare(name, "ms", small[ours], (peer, small[key]), held).as_row())
    return rows


def measure(work: Path, given: Mapping[str, Any], progress: Progress) -> dict[str, dict[str, float]]:
    """The child's side."""
    from penstock.adapters.log import EmbeddedLog
    from penstock.bench.container import TrialContainer, TrialSettings
    from penstock.spark.bus import LogBus

    progress("starting Spark")
    jars = tuple(Path(jar) for jar in given.get("jars", ()))
    trial = TrialContainer(work, TrialSettings(slots=THREADS, heap="2g", jars=jars))
    trial.probe.enable(False)
    systems = ["log", "log, unsynced", "parquet", *(["kafka"] if "servers" in given else [])]
    rates: dict[str, dict[str, list[float]]] = {s: {step: [] for step in STEPS} for s in systems}
    loose = LogBus(EmbeddedLog(work / "loose", durable=False), sync=False)
    speed = _Speed(trial, loose, given.get("servers", ""))
    for number, system in enumerate([*systems, *alternate(systems, given["turns"])]):
        warming = number < len(systems)
        for step in STEPS:
            rate = speed.rate(system, step, f"turn-{number}", 2 if warming else given["batches"])
            if not warming:
                rates[system][step].append(rate)
                progress(f"{system}, {step}: {rate:,.0f} rows/s")
    found = {s: {step: median(held) for step, held in steps.items()} for s, steps in rates.items()}
    return {**found, "small": _small_batches(trial, loose, given["small"], progress)}


class _Speed:
    """Runs one step of one system: what a turn writes, the same turn reads."""

    def __init__(self, trial: Any, loose: Any, servers: str) -> None:
        self._trial, self._servers = trial, servers
        self._queries: dict[str, Callable[[str, str], Any]] = {
            "log": partial(self._log, trial.bus),
            "log, unsynced": partial(self._log, loose),
            "parquet": self._parquet,
            "kafka": self._kafka_query,
        }
        self._kafka: Any = None
        if self._servers:
            from penstock.adapters.kafka import KafkaTopics

            self._kafka = KafkaTopics(self._servers)

    def rate(self, system: str, step: str, turn: str, batches: int) -> float:
        """Rows per second of whole batches, the first left out."""
        from penstock.spark.trials import plain

        writer = self._queries[system](step, turn)
        checkpoint = self._trial.work / "checkpoints" / f"{turn}-{step.replace(' ', '-')}"
        if step == "written":
            # One batch more than is measured, so that what is read later has one to warm up with too.
            return span_rate(plain.run_batches(writer, checkpoint, batches + 1, 200.0)[1:])
        return span_rate(plain.run_now(writer, checkpoint, 200.0)[1:])

    def _log(self, bus: Any, step: str, turn: str) -> Any:
        from penstock.spark.trials import plain

        trial = self._trial
        target = turn if step == "written" else f"{turn}-again"
        bus.topics.create(target, 4)
        run = f"{turn}-{step.replace(' ', '-')}"
        copying = plain.Copying(run, turn, target, RECORDS, THREADS)
        if step == "written":
            rows = plain.make_rows(trial.session, RECORDS, THREADS)
            return plain.write_log(rows, bus, trial.host.hub, copying)
        rows = plain.touch(plain.read_log(trial.session, bus, trial.host.hub, copying))
        if step == "read":
            return plain.write_nowhere(rows)
        return plain.write_log(rows, bus, trial.host.hub, copying)

    def _parquet(self, step: str, turn: str) -> Any:
        from penstock.spark.trials import plain

        trial, folder = self._trial, self._trial.work / turn
        if step == "written":
            return plain.write_parquet(plain.make_rows(trial.session, RECORDS, THREADS), folder)
        rows = plain.touch(plain.read_parquet(trial.session, folder, THREADS))
        return plain.write_nowhere(rows) if step == "read" else plain.write_parquet(rows, folder / "again")

    def _kafka_query(self, step: str, turn: str) -> Any:
        from penstock.spark.trials import plain

        trial = self._trial
        target = turn if step == "written" else f"{turn}-again"
        self._kafka.create(target, 4)
        if step == "written":
            rows = plain.make_rows(trial.session, RECORDS, THREADS)
            return plain.write_kafka(rows, self._servers, target)
        copying = plain.Copying(turn, turn, target, RECORDS, THREADS)
        rows = plain.touch(plain.read_kafka(trial.session, self._servers, copying))
        return plain.write_nowhere(rows) if step == "read" else plain.write_kafka(rows, self._servers, target)


def _small_batches(trial: Any, loose: Any, count: int, progress: Progress) -> dict[str, float]:
    """Median milliseconds of batches of 10 rows each, turn by turn."""
    progress(f"{count} small batches of each")
    runs = _SmallBatches(trial, loose)
    contenders: dict[str, Callable[[str], Any]] = {
        "log": runs.synced,
        "log, unsynced": runs.unsynced,
        "rate": runs.rate,
        "rate, default": runs.rate_default,
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    each = max(15, count // 2)
    for number, name in enumerate(alternate(list(contenders), 3)):
        held = [b.seconds for b in contenders[name](f"small-{number}")(each)]
        if number >= len(contenders):  # the first turn of each warms up
            seconds[name] += held[5:]
    return {name: median(held) * 1000 for name, held in seconds.items()}


class _SmallBatches:
    """One query of each kind; a call gives what runs so many of its batches."""

    def __init__(self, trial: Any, loose: Any) -> None:
        self._trial, self._loose = trial, loose

    def synced(self, turn: str) -> Callable[[int], Any]:
        return self._log(self._trial.bus, turn)

    def unsynced(self, turn: str) -> Callable[[int], Any]:
        return self._log(self._loose, turn)

    def _log(self, bus: Any, turn: str) -> Callable[[int], Any]:
        from penstock.model.records import Record
        from penstock.spark.trials import plain

        trial, copying = self._trial, plain.Copying(turn, f"{turn}-in", f"{turn}-out", 10, 1)
        bus.topics.create(copying.source, 1)
        bus.topics.create(copying.target, 1)
        bus.topics.append(copying.source, [Record(None, b"small", 0)] * 2_000)
        rows = plain.read_log(trial.session, bus, trial.host.hub, copying)
        writer = plain.write_log(plain.touch(rows.where("key is null")), bus, trial.host.hub, copying)
        return lambda count: plain.run_batches(writer, trial.work / "checkpoints" / turn, count, 120.0)

    def rate(self, turn: str) -> Callable[[int], Any]:
        return self._rate(self._trial.session, turn)

    def rate_default(self, turn: str) -> Callable[[int], Any]:
        session = self._trial.session.newSession()
        session.conf.set("spark.sql.streaming.checkpointFileManagerClass", DEFAULT_MANAGER)
        return self._rate(session, turn)

    def _rate(self, session: Any, turn: str) -> Callable[[int], Any]:
        from penstock.spark.trials import plain

        writer = plain.write_nowhere(plain.touch(plain.make_rows(session, 10, 1)))
        checkpoint = self._trial.work / "checkpoints" / turn
        return lambda count: plain.run_batches(writer, checkpoint, count, 120.0)
