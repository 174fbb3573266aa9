"""What the probe costs: batches of about 200 ms at a trigger of 1 s, with it and without it, turn by turn.

With it means all of it: the listener, the executor's part around every Spark task and its samples of processes, and
Python's part, which fetches and reads all of that twice a second. Without it none of that is called. Between two
batches, while the query sleeps, the one is switched for the other. Batch times are Spark's own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil

from penstock.bench.children import Progress, run_child
from penstock.bench.noise import mean_of, noise_of, p99_of, pair_up
from penstock.bench.rows import BenchRow, Goal, compare

SECONDS, QUICK_SECONDS = 240, 30
BATCH_SECONDS = 0.2
WARM_UP_SECONDS = 12
GOAL = Goal(1.01)
PEER = "the same batches without it"
SWITCH_AT = 0.7
"""Part of each second at which the next one's turn is set: batches begin at whole seconds and are over by then."""
THREADS, PARTS = 2, 8


class ProbeBench:
    """`penstock bench spark --only probe`."""

    name = "probe"
    describe = "what measuring costs: batches of 200 ms with the probe and without it, turn by turn"

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]:
        seconds = QUICK_SECONDS if quick else SECONDS
        with TemporaryDirectory(prefix="penstock-bench-") as folder:
            found = run_child("probe_cost", Path(folder), {"seconds": seconds}, progress)
        ours, peers = pair_up([(bool(on), ms) for on, ms in found["batches"]])
        cpu = pair_up([(bool(on), ms) for on, ms in found["cpu"]])
        rows = rows_of(ours, peers, progress)
        rows.append(compare("CPU per batch", "ms", float(np.mean(cpu[0])), (PEER, float(np.mean(cpu[1])))))
        return [row.as_row() for row in rows]


def rows_of(ours: Sequence[float], peers: Sequence[float], progress: Progress) -> list[BenchRow]:
    """Mean and 99th percentile; a goal that noise hides is neither met nor missed."""
    rows: list[BenchRow] = []
    for name, statistic, goal in (("mean", mean_of, GOAL), ("p99", p99_of, Goal(1.0))):
        noise = noise_of(ours, peers, statistic)
        values = [statistic(np.array(side, dtype=np.float64)) for side in (ours, peers)]
        row = compare(f"batch time, {name}", "ms", values[0], (PEER, values[1]))
        progress(
            f"{name}: {100 * (row.ratio - 1):+.1f}% over {len(ours)} pairs; chance alone makes up to {100 * noise:.1f}%"
        )
        met = True if goal.holds(row.ratio) else None if row.ratio <= 1 + noise else False
        told = f"{goal} (noise {100 * noise:.1f}%)"
        rows.append(BenchRow(row.name, row.unit, row.ours, row.peer, PEER, row.ratio, told, met))
    return rows


def measure(work: Path, given: Mapping[str, Any], progress: Progress) -> dict[str, Any]:
    """The child's side: [with the probe, ms] of every batch, and CPU time of all processes beside each."""
    from penstock.bench.container import TrialContainer, TrialSettings, wait_until
    from penstock.spark.starting import prepare_topics
    from penstock.spark.trials.plain import read_progress

    progress("starting Spark")
    trial = TrialContainer(work, TrialSettings(slots=THREADS, durable=False))
    prepare_topics(trial.declare(lambda: _declare("none", 1, 1))[0], trial.bus)
    seconds = given["seconds"] + WARM_UP_SECONDS
    progress("finding how many records take 200 ms")
    records = 4_000
    for attempt in range(3):
        codes = trial.declare(lambda n=attempt, r=records: _declare(f"try-{n}", r, THREADS))
        trial.fill("in", records * 12, b"x" * 60)
        trial.host.add(codes[0], trial.bus, available_now=True)
        task = trial.host.tasks(codes[0].spec.name)[0]
        wait_until(lambda t=task: _watch(trial, t), "batches of the right size")
        full = [b for b in read_progress(task.progress()) if b.records == records][-5:]
        trial.host.remove(codes[0].spec.name)
        took = float(np.median([b.seconds for b in full])) if full else BATCH_SECONDS
        records = max(
            500, round(records * min(8.0, max(0.2, (BATCH_SECONDS - 0.04) / max(0.01, took - 0.04))))
        )
    progress(f"{records:,} records a batch; {seconds:.0f} s of turns")
    code = trial.declare(lambda: _declare("measured", records, THREADS))[0]
    ends = sum(trial.bus.topics.end_offsets(["in"]).values())
    trial.fill("in", max(0, int(records * (seconds + 15)) - ends), b"x" * 60)
    trial.host.add(code, trial.bus)
    task = trial.host.tasks("measured")[0]
    switch, cpu = _take_turns(trial, seconds)
    batches = [b for b in read_progress(task.progress()) if b.records == records]
    trial.host.drain(10.0)
    marked = [
        (switch[second], b.seconds * 1000) for b in batches if (second := round(b.started_at)) in switch
    ]
    return {"batches": marked[WARM_UP_SECONDS:], "cpu": cpu[WARM_UP_SECONDS:]}


def _declare(name: str, records: int, threads: int) -> object:
    from penstock import job, topic

    rows = topic("in", schema="line string", codec="string", partitions=2)
    hashes = topic("out", schema="line string", codec="string", partitions=2)

    @job(name=name, reads=rows, writes=hashes, trigger="1s", threads=threads, max_records_per_batch=records)
    def work(lines: Any) -> Any:
        digest = "line"
        for _ in range(12):
            digest = f"sha2({digest}, 256)"
        return lines.selectExpr(f"{digest} as line").repartition(PARTS)

    return work


def _watch(trial: Any, task: Any) -> bool:
    trial.host.collect(time.time())
    return task.look() in ("stopped", "failed")


def _take_turns(trial: Any, seconds: float) -> tuple[dict[int, bool], list[tuple[bool, float]]]:
    """Which seconds had the probe, in pairs of random order, and the CPU time spent in each (ms)."""
    random = np.random.default_rng(7)
    order = [bool(x) for first in random.integers(0, 2, int(seconds) // 2 + 1) for x in (first, 1 - first)]
    switch: dict[int, bool] = {}
    cpu: list[tuple[bool, float]] = []
    begin = int(time.time()) + 1
    on = True
    spent = _cpu_seconds()
    for turn in range(int(seconds)):
        _sleep_until(begin + turn - 1 + SWITCH_AT)
        now = _cpu_seconds()
        if turn:
            cpu.append((on, (now - spent) * 1000))
        spent, on = now, order[turn]
        trial.probe.enable(on)
        switch[begin + turn] = on
        for part in (0.1, 0.55):
            _sleep_until(begin + turn + part)
            if on:
                trial.host.collect(time.time())
    trial.probe.enable(True)
    return switch, cpu


def _sleep_until(when: float) -> None:
    time.sleep(max(0.0, when - time.time()))


def _cpu_seconds() -> float:
    me = psutil.Process()
    times = [p.cpu_times() for p in [me, *me.children(recursive=True)]]
    return sum(t.user + t.system for t in times)
