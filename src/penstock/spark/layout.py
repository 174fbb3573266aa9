"""Which generation and epoch a job runs in, kept on disk beside its checkpoints.

A generation is a task layout: another number of tasks, or another set of partitions, makes a new one, and its first
offsets are written once, before its first start. An epoch counts the runs within it. Both only grow. What is started
anew on purpose says so here until it has begun, so that what it forgot is not taken for lost.
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


def what_differs(checkpoints: Path, job: str, tasks: int, partitions: Mapping[str, int]) -> str:
    """Why the job cannot go on from its checkpoints, in words; empty when it can, or begins anew on purpose."""
    folder = checkpoints / job
    held = _held(folder / LAYOUT)
    if _to_begin(folder, held):
        return ""
    if not held.get("shape"):
        return f"{folder / LAYOUT}, which says how its work is laid out, is gone"
    if held["shape"]["tasks"] != tasks:
        return f"it keeps state in {held['shape']['tasks']} tasks and cannot run in {tasks}"
    before: dict[str, int] = held["shape"]["partitions"]
    for topic in sorted({*before, *partitions}):
        if topic not in before:
            return f"topic {topic!r} is new among its inputs"
        if topic not in partitions:
            return f"topic {topic!r} is no input of it any more"
        if before[topic] != partitions[topic]:
            return f"topic {topic!r} had {before[topic]} partitions and has {partitions[topic]} now"
    begun = folder / f"g{held['generation']}"
    return "" if any(begun.glob("*.initial.json")) else f"its checkpoints ({begun}) are gone"


def has_checkpoints(checkpoints: Path, job: str) -> bool:
    """Whether some generation of the job has committed a batch to its checkpoint."""
    return any((checkpoints / job).glob("g*/*/commits/*"))


def goes_on(checkpoints: Path, job: str, tasks: int, partitions: Mapping[str, int]) -> bool:
    """Whether the job's next run begins where a checkpoint stands, and not with batch 0."""
    folder = checkpoints / job
    held = _held(folder / LAYOUT)
    same = held.get("shape") == _shape(tasks, partitions)
    return same and any((folder / f"g{held['generation']}").glob("*/offsets/[0-9]*"))


def generation_of(checkpoints: Path, job: str) -> int:
    """The job's newest generation; 0 when it never ran."""
    return _held(checkpoints / job / LAYOUT).get("generation", 0)


def state_bytes(checkpoints: Path, job: str) -> int:
    """What a job's tasks keep as state on disk."""
    return sum(p.stat().st_size for p in (checkpoints / job).glob("g*/*/state/**/*") if p.is_file())


def begin_anew(checkpoints: Path, job: str) -> int:
    """The next run is of a new generation, so that fences keep growing; older ones' checkpoints go. Which one it is."""
    folder = checkpoints / job
    held, older = _held(folder / LAYOUT), _generations(folder)
    newest = max([held.get("generation", 0), *older])
    folder.mkdir(parents=True, exist_ok=True)
    anew = {"generation": newest + 1, "epoch": 0, "shape": held.get("shape", {}), "anew": True}
    write_durably(folder / LAYOUT, json.dumps(anew))
    for number in older:
        shutil.rmtree(folder / f"g{number}")
    return newest + 1


def _generations(folder: Path) -> list[int]:
    """Those that left something, whatever the layout says."""
    return [int(found.name[1:]) for found in folder.glob("g*") if found.name[1:].isdecimal()]


def _to_begin(folder: Path, held: Mapping[str, Any]) -> bool:
    """It was started anew, and has not begun since."""
    return bool(held.get("anew")) and not any(folder.glob("g*/*.initial.json"))


def _shape(tasks: int, partitions: Mapping[str, int]) -> dict[str, Any]:
    return {"tasks": tasks, "partitions": dict(sorted(partitions.items()))}


def _held(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text()) if file.exists() else {}


def open_layout(
    checkpoints: Path,
    job: str,
    tasks: int,
    partitions: Mapping[str, int],
    written: Callable[[], int] = lambda: 0,
) -> JobLayout:
    """The job's generation for this layout, with a new epoch; written before it is used. `written`: the newest
    generation that its sink knows of, asked where none has begun here: a run must not begin below it.
    """
    folder = checkpoints / job
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / LAYOUT
    held = _held(file)
    shape = _shape(tasks, partitions)
    same = held.get("shape") == shape
    newest = held["generation"] if held else max([0, *_generations(folder)])
    generation = newest + (0 if same else 1)
    anew = _to_begin(folder, held)
    if not held or (anew and held["epoch"] == 0):
        generation = max(generation, written() + 1)
    epoch = held["epoch"] + 1 if same else 1
    write_durably(file, json.dumps({"generation": generation, "epoch": epoch, "shape": shape, "anew": anew}))
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
