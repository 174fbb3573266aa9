"""Which generation and epoch a job runs in, kept on disk beside its checkpoints.

A generation is a task layout: another number of tasks, or another set of partitions, makes a new one, and its first
offsets are written once, before its first start. An epoch counts the runs within it. Both only grow.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.model.ids import TopicPartition

LAYOUT = "layout.json"


@dataclass(frozen=True)
class JobLayout:
    """A job's place on disk for one run."""

    folder: Path
    generation: int
    epoch: int

    def checkpoint(self, index: int) -> Path:
        """Spark's checkpoint of one task."""
        return self.folder / f"g{self.generation}" / str(index)


def tasks_before(checkpoints: Path, job: str) -> int:
    """Tasks of the job's newest generation; 0 when it never ran."""
    return _held(checkpoints / job / LAYOUT).get("shape", {}).get("tasks", 0)


def generation_of(checkpoints: Path, job: str) -> int:
    """The job's newest generation; 0 when it never ran."""
    return _held(checkpoints / job / LAYOUT).get("generation", 0)


def state_bytes(checkpoints: Path, job: str) -> int:
    """What a job's tasks keep as state on disk."""
    return sum(p.stat().st_size for p in (checkpoints / job).glob("g*/*/state/**/*") if p.is_file())


def begin_anew(checkpoints: Path, job: str) -> int:
    """The next run is of a new generation, so that fences keep growing; older ones' checkpoints go. Which one it is."""
    folder = checkpoints / job
    held = _held(folder / LAYOUT)
    if not held:
        return 0
    anew = {**held, "generation": held["generation"] + 1, "epoch": 0}
    write_durably(folder / LAYOUT, json.dumps(anew))
    for old in folder.glob("g*"):
        shutil.rmtree(old)
    return anew["generation"]


def _held(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {}


def open_layout(checkpoints: Path, job: str, tasks: int, partitions: Mapping[str, int]) -> JobLayout:
    """The job's generation for this layout, with a new epoch; written before it is used."""
    folder = checkpoints / job
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / LAYOUT
    held = _held(file)
    shape = {"tasks": tasks, "partitions": dict(sorted(partitions.items()))}
    same = held.get("shape") == shape
    generation = held.get("generation", 0) + (0 if same else 1)
    epoch = held.get("epoch", 0) + 1 if same else 1
    write_durably(file, json.dumps({"generation": generation, "epoch": epoch, "shape": shape}))
    return JobLayout(folder, generation, epoch)


def initial_offsets(
    layout: JobLayout, index: int, live: Callable[[], Mapping[TopicPartition, int]]
) -> dict[TopicPartition, int]:
    """Where one task of this generation began: `live` at its first start, the same ever after."""
    file = layout.folder / f"g{layout.generation}" / f"{index}.initial.json"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_durably(file, json.dumps([[p.topic, p.partition, at] for p, at in sorted(live().items())]))
    return {TopicPartition(topic, partition): at for topic, partition, at in json.loads(file.read_text())}


def sweep(checkpoint: Path) -> int:
    """Remove what a killed run left half-written (hidden temporary and checksum files); how many."""
    left = [p for p in checkpoint.rglob(".*") if p.is_file() and p.suffix in (".tmp", ".crc")]
    for file in left:
        file.unlink(missing_ok=True)
    return len(left)


def write_durably(file: Path, text: str) -> None:
    """Replace a file so that a crash leaves the old one or the new one."""
    temporary = file.with_name(f".{file.name}.tmp")
    with temporary.open("w") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    temporary.replace(file)
    directory = os.open(file.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
