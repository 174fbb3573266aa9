"""How soon a decision works: threads in the next batch, executors as soon as their JVM is there.

Threads: a job is given another number of threads at odd moments; counted are the batches that begin after that with the
old number (goal: none), and the seconds until one with the new number is done, the wait for its trigger included. The
peer does what plain Spark needs: it stops the query and starts it again with other options, from the same checkpoint;
its first batch does not wait for a trigger.
Executors, on a standalone cluster on loopback: from the request until a second executor is registered, and until it runs
a task. The peer is Spark's own dynamic allocation with its default of 1 s of backlog, from the moment that work waits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from penstock.bench.children import Progress, run_child
from penstock.bench.rows import Goal, compare

CHANGES, QUICK_CHANGES = 60, 8
RESTARTS, QUICK_RESTARTS = 20, 5
GROWTHS, QUICK_GROWTHS = 5, 1
SIZES = (1, 4, 2, 6, 3, 8)
INTERVAL_SECONDS = 0.4
RECORDS = 4_000
EXECUTOR_SLOTS = 2
RESTART = "stop and start again, plain Spark"
ALLOCATION = "Spark's dynamic allocation, from waiting work on"
NEXT = Goal(0.0)
Begun = tuple[float, int, float]
"""A batch: when it began, with how many threads, how long it took (seconds)."""


class ReactionBench:
    """`penstock bench spark --only reaction`."""

    name = "reaction"
    describe = (
        "from a decision to the first batch with the new threads, and to the first task of a new executor"
    )

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]:
        changes = {
            "changes": QUICK_CHANGES if quick else CHANGES,
            "restarts": QUICK_RESTARTS if quick else RESTARTS,
        }
        with TemporaryDirectory(prefix="penstock-bench-") as name:
            folder = Path(name)
            threads = run_child("reaction", folder / "threads", {"what": "threads", **changes}, progress)
            growth = self._grow(folder, QUICK_GROWTHS if quick else GROWTHS, progress)
        return [*rows_of_threads(threads), *rows_of_executors(growth)]

    def _grow(self, folder: Path, times: int, progress: Progress) -> dict[str, dict[str, list[float]]]:
        from penstock.spark.standalone import StandaloneCluster, WorkerSize

        progress("starting a standalone cluster on loopback")
        with StandaloneCluster(folder / "cluster", 1, WorkerSize(slots=8, memory="3g")) as cluster:
            given = {"what": "executors", "master": cluster.address, "times": times}
            return {
                kind: run_child("reaction", folder / kind, {**given, "kind": kind}, progress)
                for kind in ("ours", "allocation")
            }


def rows_of_threads(found: Mapping[str, Sequence[float]]) -> list[Mapping[str, object]]:
    """Batches in between and seconds."""
    between, ours, peer = found["between"], found["seconds"], found["restart_seconds"]
    told = f"{len(ours)} changes of threads"
    # A ratio to none is none: the goal is about the count itself, held against a batch.
    rows = [
        compare(f"{told}, batches in between, mean", "batches", mean(between), ("one batch", 1.0), NEXT),
        compare(f"{told}, batches in between, most", "batches", max(between), ("one batch", 1.0), NEXT),
        compare(
            f"{told}, until a batch with them is done, median", "s", median(ours), (RESTART, median(peer))
        ),
        compare(f"{told}, until a batch with them is done, longest", "s", max(ours), (RESTART, max(peer))),
    ]
    return [row.as_row() for row in rows]


def rows_of_executors(found: Mapping[str, Mapping[str, Sequence[float]]]) -> list[Mapping[str, object]]:
    """Seconds, ours beside Spark's."""
    return [
        compare(
            f"1 -> 2 executors, {what}",
            "s",
            median(found["ours"][key]),
            (ALLOCATION, median(found["allocation"][key])),
        ).as_row()
        for what, key in (("until registered", "registered"), ("until its first task", "first_task"))
    ]


def measure(work: Path, given: Mapping[str, Any], progress: Progress) -> dict[str, list[float]]:
    """The child's side of both."""
    return (
        _threads(work, given, progress) if given["what"] == "threads" else _executors(work, given, progress)
    )


# -- threads -------------------------------------------------------------------------------------------------------


def _threads(work: Path, given: Mapping[str, Any], progress: Progress) -> dict[str, list[float]]:
    from penstock.bench.container import TrialContainer, TrialSettings
    from penstock.spark.starting import prepare_topics

    progress("starting Spark")
    trial = TrialContainer(work, TrialSettings(slots=8, durable=False))
    code = trial.declare(_declare)[0]
    prepare_topics(code, trial.bus)
    trial.fill("in", RECORDS * 12, b"x" * 60)
    trial.host.add(code, trial.bus)
    decided, samples = _change(trial, given["changes"], progress)
    trial.drop([code])
    between, seconds = judge_changes(decided, samples)
    progress(f"{given['restarts']} restarts of a plain query")
    return {"between": between, "seconds": seconds, "restart_seconds": _restart(trial, given["restarts"])}


def _declare() -> object:
    from penstock import job, topic

    rows = topic("in", schema="line string", codec="string", partitions=4)
    shouted = topic("out", schema="line string", codec="string", partitions=4)

    @job(reads=rows, writes=shouted, trigger=f"{INTERVAL_SECONDS}s", max_records_per_batch=RECORDS)
    def shout(lines: Any) -> Any:
        return lines.selectExpr("upper(line) as line")

    return shout


def _change(trial: Any, changes: int, progress: Progress) -> tuple[list[tuple[float, int]], list[Begun]]:
    """(when, threads) of every decision, and all batches."""
    random = np.random.default_rng(3)
    decided: list[tuple[float, int]] = []
    samples: list[Begun] = []
    ended = threading.Event()
    feeder = threading.Thread(target=_feed, args=(trial, ended), daemon=True)
    feeder.start()
    _look(trial, samples, 6.0)
    progress(f"{changes} changes of threads at odd moments")
    for number in range(changes):
        threads = SIZES[number % len(SIZES)]
        trial.host.set_threads("shout", threads)
        decided.append((time.time(), threads))
        _look(trial, samples, float(random.uniform(1.2, 2.0)))
    _look(trial, samples, 2.0)
    ended.set()
    feeder.join(10.0)
    return decided, samples


def _feed(trial: Any, ended: threading.Event) -> None:
    while not ended.wait(0.3):
        trial.fill("in", 400, b"x" * 60)


def _look(trial: Any, samples: list[Begun], seconds: float) -> None:
    until = time.time() + seconds
    while time.time() < until:
        trial.host.tick(time.time())
        samples += [
            (s.started_at, s.threads, s.duration_seconds) for s in trial.host.collect(time.time()).batches
        ]
        time.sleep(0.05)


def judge_changes(
    decided: Sequence[tuple[float, int]], batches: Sequence[Begun]
) -> tuple[list[float], list[float]]:
    """Of each change: batches that began after it with other threads, and seconds to the end of the first with these."""
    between: list[float] = []
    seconds: list[float] = []
    for number, (at, threads) in enumerate(decided):
        until = decided[number + 1][0] if number + 1 < len(decided) else float("inf")
        later = [batch for batch in sorted(batches) if at <= batch[0] < until]
        first = next((i for i, (_, had, _) in enumerate(later) if had == threads), None)
        if first is None:
            if later:
                between.append(float(len(later)))
            continue
        between.append(float(first))
        seconds.append(later[first][0] + later[first][2] - at)
    return between, seconds


def _restart(trial: Any, times: int) -> list[float]:
    """Seconds from the decision until the first batch of the restarted query is done."""
    from penstock.spark.trials import plain

    trial.probe.enable(False)
    trial.fill("in", 400 * (times + 2) * 10, b"x" * 60)
    found: list[float] = []
    query: Any = None
    for number in range(times + 1):
        decided = time.time()
        if query is not None:
            query.stop()
        copying = plain.Copying("plain", "in", "out", 400, SIZES[number % len(SIZES)])
        frame = plain.shout(plain.read_log(trial.session, trial.bus, trial.host.hub, copying))
        writer = plain.write_log(frame, trial.bus, trial.host.hub, copying)
        writer = writer.trigger(processingTime=f"{INTERVAL_SECONDS} seconds")
        query = writer.option("checkpointLocation", str(trial.work / "checkpoints" / "plain")).start()
        while not (batches := plain.batches_of(query)):
            if not query.isActive:
                raise RuntimeError(f"the plain query ended: {query.exception()}")
            time.sleep(0.01)
        if number:
            found.append(batches[0].started_at + batches[0].seconds - decided)
        time.sleep(0.6)
    query.stop()
    return found


# -- executors -----------------------------------------------------------------------------------------------------


def _executors(work: Path, given: Mapping[str, Any], progress: Progress) -> dict[str, list[float]]:
    from penstock.spark.trials import executors

    ours = given["kind"] == "ours"
    progress(f"executors come and go {given['times']} times, {'by request' if ours else 'by Spark itself'}")
    start = executors.Requested if ours else executors.Allocated
    trial = start(work, given["master"], EXECUTOR_SLOTS)
    found: dict[str, list[float]] = {"registered": [], "first_task": []}
    warming = 1 if given["times"] > 1 else 0
    for number in range(given["times"] + warming):
        registered, first_task = trial.grow()
        trial.shrink()
        if number >= warming:  # the first finds nothing in the caches of this machine
            found["registered"].append(registered)
            found["first_task"].append(first_task)
    with suppress(Exception):
        trial.session.stop()
    return found
