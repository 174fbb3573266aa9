"""What being managed costs: a job of a pipeline beside the same query written by hand, over the same topics.

In one session, turn by turn, each works through the same records as fast as it can. Ours has all that a run has: probe,
pool, admission, the loops of autoscaler, tender and reporter, a journal. On the embedded log the hand-written one uses
the same source and sink with a fixed plan; on Kafka it uses Spark's own source and sink. Counted are batches of the
full size, from the start of the first to the end of the last, so that neither start nor growth counts. Batches are as
large as a job's that catches up, some hundred milliseconds; small ones show what is paid for each batch. Nothing is
synced to disk, on neither side: waiting for a disk would hide the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

from penstock.bench.broker import KafkaPlace, kafka_place
from penstock.bench.children import Progress, run_child
from penstock.bench.rows import Goal, compare, skip
from penstock.bench.turns import alternate
from penstock.ports.services import Services

GOAL = Goal(0.97, "higher")
TURNS, QUICK_TURNS = 6, 2
WARM_UP_TURNS, QUICK_WARM_UP_TURNS = 2, 1
LARGE, SMALL = 400_000, 50_000
BATCHES, QUICK_BATCHES = 6, 4
THREADS = 2
FULL_SHARE = 0.99
UNIT = "rows/s"
PEERS = {"log": "hand-written, same source and sink", "kafka": "hand-written, Spark's Kafka source and sink"}
NAMES = {"log": "embedded log", "kafka": "Kafka"}


class ManagedBench:
    """`penstock bench spark --only managed`."""

    name = "managed"
    describe = "a managed job beside the same query written by hand: rows per second, end to end"

    def __init__(self, services: Services) -> None:
        self._services = services

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]:
        given = {
            "turns": QUICK_TURNS if quick else TURNS,
            "warm_up": QUICK_WARM_UP_TURNS if quick else WARM_UP_TURNS,
            "batches": QUICK_BATCHES if quick else BATCHES,
            "sizes": [LARGE, SMALL],
        }
        rows: list[Mapping[str, object]] = []
        with TemporaryDirectory(prefix="penstock-bench-") as name:
            folder = Path(name)
            rows += rows_of("log", run_child("managed", folder / "log", given, progress))
            with kafka_place(self._services, folder / "kafka", progress) as place:
                if isinstance(place, KafkaPlace):
                    found = run_child("managed", folder / "on-kafka", {**given, **place.as_json()}, progress)
                    rows += rows_of("kafka", found)
                else:
                    progress(f"left out: {place}")
                    rows += rows_of("kafka", None)
        return rows


def rows_of(
    kind: str, found: Mapping[str, Mapping[str, Sequence[float]]] | None
) -> list[Mapping[str, object]]:
    """A row for each size of batches, from rates by size and contender; the goal is about large ones."""
    rows: list[Mapping[str, object]] = []
    for size, goal in ((LARGE, GOAL), (SMALL, None)):
        name = f"managed, {NAMES[kind]}, {size:,} a batch"
        if found is None:
            rows.append(skip(name, UNIT, PEERS[kind], goal).as_row())
            continue
        held = found[str(size)]
        row = compare(name, UNIT, median(held["managed"]), (PEERS[kind], median(held["plain"])), goal)
        rows.append(row.as_row())
    return rows


def rate_of(batches: Sequence[Any], records: int) -> float:
    """Rows per second over batches of the full size (`spark.trials.plain.Batch`), the first left out.

    Spark's Kafka source rounds each partition's share down, so a full batch may lack a few rows.
    """
    full = [b for b in batches if b.records >= FULL_SHARE * records]
    return span_rate(full[1:])


def span_rate(batches: Sequence[Any]) -> float:
    """Rows per second from the start of the first to the end of the last."""
    if not batches:
        return float("nan")
    last = batches[-1]
    return sum(b.records for b in batches) / (last.started_at + last.seconds - batches[0].started_at)


def measure(work: Path, given: Mapping[str, Any], progress: Progress) -> dict[str, dict[str, list[float]]]:
    """The child's side: rows per second of each turn, by size of batches and contender."""
    from penstock.bench.container import TrialContainer, TrialSettings

    progress(f"starting Spark{' with Kafka' if 'servers' in given else ''}")
    jars = tuple(Path(jar) for jar in given.get("jars", ()))
    trial = TrialContainer(work, TrialSettings(slots=THREADS, heap="2g", durable=False, jars=jars))
    runs = _Runs(trial, given)
    return {str(size): _take_turns(runs, size, given, progress) for size in given["sizes"]}


def _take_turns(
    runs: _Runs, size: int, given: Mapping[str, Any], progress: Progress
) -> dict[str, list[float]]:
    runs.fill(size)
    found: dict[str, list[float]] = {"managed": [], "plain": []}
    warming = 2 * given["warm_up"]
    for number, kind in enumerate(alternate(("managed", "plain"), given["warm_up"] + given["turns"])):
        run = runs.managed if kind == "managed" else runs.plain
        rate = rate_of(run(f"{kind}-{size}-{number}", size), size)
        if number >= warming:
            found[kind].append(rate)
        progress(
            f"{kind}, {size:,} a batch: {rate:,.0f} rows/s{'' if number >= warming else ' (warming up)'}"
        )
    return found


class _Runs:
    """Ours and the hand-written query, each over all records of a topic; what they write is deleted afterwards."""

    def __init__(self, trial: Any, given: Mapping[str, Any]) -> None:
        self._trial, self._bus, self._batches = trial, trial.bus, given["batches"]
        self._servers: str = given.get("servers", "")
        if self._servers:
            from penstock.adapters.kafka import KafkaTopics
            from penstock.spark.kafka import KafkaBus

            self._bus = KafkaBus(KafkaTopics(self._servers), {"bootstrap.servers": self._servers})

    def fill(self, size: int) -> None:
        """Records for all batches, and for what a job grows through from its first 100 on: two batches at most."""
        from penstock.spark.trials import plain

        trial, topic = self._trial, f"in-{size}"
        self._bus.topics.create(topic, 4)
        rows = plain.make_rows(trial.session, size, THREADS)
        if self._servers:
            writer = plain.write_kafka(rows, self._servers, topic)
        else:
            copying = plain.Copying(f"fill-{size}", "", topic)
            writer = plain.write_log(rows, self._bus, trial.host.hub, copying)
        plain.run_batches(writer, trial.work / "checkpoints" / f"fill-{size}", self._batches + 3, 120.0)

    def managed(self, name: str, size: int) -> Sequence[Any]:
        """The batches of a job."""
        from penstock.bench.container import Managing, wait_until
        from penstock.spark.trials.plain import read_progress

        trial = self._trial
        trial.probe.enable(True)
        with Managing(trial, trial.declare(lambda: _declare(name, size)), self._bus):
            wait_until(lambda: trial.host.state(name) == "stopped", f"{name} to take all records")
            batches = read_progress(trial.host.tasks(name)[0].progress())
        trial.host.remove(name)
        self._forget(name)
        return batches

    def plain(self, name: str, size: int) -> Sequence[Any]:
        """The batches of the query written by hand."""
        from penstock.spark.trials import plain

        trial = self._trial
        trial.probe.enable(False)
        copying = plain.Copying(name, f"in-{size}", f"out-{name}", size, THREADS)
        self._bus.topics.create(copying.target, 4)
        if self._servers:
            frame = plain.shout(plain.read_kafka(trial.session, self._servers, copying))
            writer = plain.write_kafka(frame, self._servers, copying.target)
        else:
            frame = plain.shout(plain.read_log(trial.session, self._bus, trial.host.hub, copying))
            writer = plain.write_log(frame, self._bus, trial.host.hub, copying)
        batches = plain.run_now(writer, trial.work / "checkpoints" / name, 300.0)
        self._forget(name)
        return batches

    def _forget(self, name: str) -> None:
        self._bus.topics.delete(f"out-{name}")
        if not self._servers:
            self._trial.log.maintain()


def _declare(name: str, size: int) -> object:
    from penstock import job, topic

    rows = topic(f"in-{size}", schema="line string", codec="string", partitions=4)
    shouted = topic(f"out-{name}", schema="line string", codec="string", partitions=4)

    @job(
        name=name,
        reads=rows,
        writes=shouted,
        trigger="30s",
        slo_lag="120s",
        threads=THREADS,
        min_threads=THREADS,
        max_threads=THREADS,
        max_records_per_batch=size,
    )
    def shout(lines: Any) -> Any:
        return lines.selectExpr("upper(line) as line")

    return shout
