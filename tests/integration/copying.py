"""A job that copies a topic, what it reads and wrote, and what may happen to its checkpoint and layout."""

from __future__ import annotations

from dataclasses import replace

from penstock import job, topic
from penstock.spark.frames import JobCode
from worlds import INTERVAL, World


def copy_job(prefix: str = "", **options: object) -> None:
    """From `in` to `out`; on a broker that tests share all names begin with a prefix."""
    source = topic(f"{prefix}.in" if prefix else "in", schema="id long", partitions=4)
    target = topic(f"{prefix}.out" if prefix else "out", schema="id long", partitions=3)

    @job(
        name=f"{prefix}-copy" if prefix else "copy",
        reads=source,
        writes=target,
        **{"trigger": INTERVAL, **options},
    )
    def copy(rows):
        return rows


def rows(start: int, end: int) -> list[dict[str, int]]:
    return [{"id": i} for i in range(start, end)]


def ids(world: World, name: str = "out") -> list[int]:
    return sorted(row["id"] for row in world.rows(name))


def with_tasks(code: JobCode, tasks: int) -> JobCode:
    """The same job in another layout."""
    options = code.spec.options.model_copy(update={"tasks": tasks, "threads": tasks})
    return replace(code, spec=code.spec.model_copy(update={"options": options}))


def reshard_in_the_middle(world: World, codes: list[JobCode], prefix: str = "") -> int:
    """Two other layouts, each while a batch may be in flight; how many records were produced all the while."""
    name = f"{prefix}.in" if prefix else "in"
    produced = 0
    for tasks in (3, 2):
        produced += world.produce(name, rows(produced, produced + 400))
        seen = len(world.samples)
        world.until(lambda seen=seen: len(world.samples) > seen)
        world.host.stop()
        codes = [with_tasks(codes[0], tasks)]
        produced += world.produce(name, rows(produced, produced + 400))
        world.restart(codes)
        assert len(world.host.tasks(codes[0].spec.name)) == tasks
    world.settle()
    return produced


def lose_tail(world: World, name: str, batches: int) -> int:
    """Remove the newest batches from a checkpoint, as a power cut may; how many were there to lose."""
    (checkpoint,) = (world.folder / "checkpoints" / name).glob("g1/0")
    newest = sorted(int(p.name) for p in (checkpoint / "offsets").iterdir() if p.name.isdigit())[-batches:]
    for folder in ("offsets", "commits"):
        for batch in newest:
            (checkpoint / folder / str(batch)).unlink()
    return len(newest)
