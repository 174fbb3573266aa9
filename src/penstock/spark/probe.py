"""Turns what the JVM measured into values of the model: one `BatchSample` for each committed batch.

The JVM hands over lines of JSON in small pieces; a piece may end inside a line. Late, doubled or unknown lines are
normal: what belongs to no task that runs here is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import psutil

from penstock.model.ids import TopicPartition
from penstock.model.observations import (
    BatchSample,
    ContainerSample,
    InstanceSample,
    ProcessSample,
    StageSample,
)
from penstock.spark.planner import BatchFacts, TaskLayout

PIECE = 7_000
"""Characters a call: py4j answers over 8 KB cost 40 ms each."""


class Measured(Protocol):
    """A task as the probe sees it."""

    layout: TaskLayout

    def facts_of(self, ends: list[str], batch_id: int) -> BatchFacts: ...


class LineReader:
    """Whole lines from pieces."""

    def __init__(self) -> None:
        self._rest = ""

    def feed(self, piece: str) -> list[str]:
        *lines, self._rest = (self._rest + piece).split("\n")
        return lines


class Probe:
    """Drains the JVM's measurements of all tasks of this container."""

    def __init__(self, machine: Any) -> None:
        self._machine, self._lines = machine, LineReader()

    def batches(self, tasks: Mapping[str, Measured]) -> list[tuple[BatchSample, dict[TopicPartition, int]]]:
        """Batches finished since the last call, each with the offsets it committed; `tasks` by the name of their run."""
        found: list[tuple[BatchSample, dict[TopicPartition, int]]] = []
        while piece := self._machine.penstock.Probe.drain(PIECE):
            for line in self._lines.feed(piece):
                record = json.loads(line)
                task = tasks.get(record["query"] or "")
                if task is not None:
                    found.append((read_batch(record, task), _ends(record)))
        return found

    def container(self, name: str, now: float, slots: int) -> ContainerSample:
        """Heap, garbage collection and memory of all processes, as of their last samples."""
        return read_container(json.loads(self._machine.penstock.PenstockPlugin.samples()), name, now, slots)


def read_batch(record: Mapping[str, Any], task: Measured) -> BatchSample:
    """One line of the JVM's probe as a sample."""
    moved = [end for start, end in record["sources"] if end and start != end]
    facts = task.facts_of(moved, record["batch"])
    layout = task.layout
    stages = [s for s in sorted(record["stages"], key=lambda s: (s["start"], s["id"])) if s["finished"]]
    duration = record["ms"].get("triggerExecution", 0) / 1000
    records_out: dict[str, float] = dict.fromkeys(layout.outputs, 0.0)
    records_out.update(facts.records_out)
    if not layout.outputs and stages:
        records_out[layout.job.outputs[0].label] = float(stages[-1]["out"])
    return BatchSample(
        task=layout.task,
        generation=layout.fence.generation,
        epoch=layout.fence.epoch,
        batch_id=record["batch"],
        started_at=record["started"] / 1000,
        duration_seconds=duration,
        stage_seconds=min(duration, covered_seconds([(s["start"], s["end"]) for s in stages])),
        threads=facts.threads,
        records_in={name: float(facts.records_in.get(name, 0)) for name in layout.job.input_topics},
        records_out=records_out,
        bytes_in=facts.bytes_in,
        bytes_out=facts.bytes_out,
        stages=tuple(_stage(i, s) for i, s in enumerate(stages)),
        state_rows=record["stateRows"],
        state_bytes=record["stateBytes"],
        dead_letters=facts.dead_letters,
        admitted=float(facts.limit or 0),
    )


def _stage(ordinal: int, stage: Mapping[str, Any]) -> StageSample:
    """A stage behind a shuffle has as many Spark tasks as the shuffle has partitions; one that reads follows the plan."""
    seconds = {
        name: stage[name] / 1000 for name in ("useful", "longest", "wasted", "fetch", "gc", "python", "delay")
    }
    return StageSample(
        ordinal=ordinal,
        spark_tasks=stage["finished"],
        ceiling=stage["planned"] if stage["shuffled"] else None,
        useful_seconds=seconds["useful"],
        records_in=stage["in"],
        records_out=stage["out"],
        bytes_in=stage["bytesIn"],
        bytes_out=stage["bytesOut"],
        fetch_wait_seconds=seconds["fetch"],
        poll_wait_seconds=stage["pollNs"] / 1e9,
        blocked_output_seconds=stage["blockedNs"] / 1e9,
        run_queue_wait_seconds=stage["queueNs"] / 1e9,
        gc_seconds=seconds["gc"],
        python_seconds=seconds["python"],
        scheduler_delay_seconds=seconds["delay"],
        spilled_bytes=stage["spilled"],
        peak_memory_bytes=stage["peak"],
        wasted_seconds=seconds["wasted"],
        longest_seconds=seconds["longest"],
        elapsed_seconds=(stage["end"] - stage["start"]) / 1000,
        instances=tuple(InstanceSample(i, o, u / 1000) for _, i, o, u in sorted(stage["instances"])),
    )


def covered_seconds(spans_ms: Sequence[tuple[float, float]]) -> float:
    """Length of the union of time spans (ms), in seconds: stages may overlap."""
    total, until = 0.0, float("-inf")
    for start, end in sorted(spans_ms):
        total += max(0.0, end - max(start, until))
        until = max(until, end)
    return total / 1000


def _ends(record: Mapping[str, Any]) -> dict[TopicPartition, int]:
    held = [found for _, end in record["sources"] if (found := _offsets(end)) is not None]
    return {TopicPartition(topic, int(p)): at for topic, ends in held for p, at in ends.items()}


def _offsets(text: str | None) -> tuple[str, dict[str, int]] | None:
    """(topic, offsets by partition) of one of our streams or of Spark's own Kafka source; none for other sources."""
    if not text:
        return None
    try:
        held = json.loads(text)
    except json.JSONDecodeError:
        return None
    if not isinstance(held, dict):
        return None
    if "stream" in held:
        return held["topic"], held["offsets"]
    [*named] = held.items()
    return named[0] if len(named) == 1 and isinstance(named[0][1], dict) else None


def read_container(
    samples: Sequence[Mapping[str, Any]], name: str, now: float, slots: int
) -> ContainerSample:
    """The executors' samples and this process as one."""
    processes = [
        ProcessSample("python-worker" if kind != "jvm" else "jvm", pid, rss, cpu_ms / 1000)
        for sample in samples
        for kind, pid, rss, cpu_ms in sample["processes"]
    ]
    me = psutil.Process()
    cpu = me.cpu_times()
    processes.append(ProcessSample("driver", me.pid, me.memory_info().rss, cpu.user + cpu.system))
    return ContainerSample(
        container=name,
        at=now,
        slots=slots,
        executors=len(samples),
        heap_used_bytes=sum(s["heapUsed"] for s in samples),
        heap_committed_bytes=sum(s["heapCommitted"] for s in samples),
        heap_max_bytes=sum(s["heapMax"] for s in samples),
        gc_seconds=sum(s["gcMs"] for s in samples) / 1000,
        gc_count=sum(s["gcCount"] for s in samples),
        processes=tuple(processes),
    )
