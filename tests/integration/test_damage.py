"""Files of the log that are hurt while a job reads them: the job stops and says which, and what is sound goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from penstock import job, topic
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange, Record
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark

HURT = TopicPartition("in", 1)


def copy_job() -> None:
    source = topic("in", schema="id long", partitions=2)
    target = topic("out", schema="id long", partitions=2)

    @job(reads=source, writes=target, trigger=INTERVAL)
    def copy(rows):
        return rows


def put(world: World, start: int, end: int) -> Path:
    """Records in one partition; the file that holds them."""
    world.topics.append(
        HURT.topic, [Record(None, b'{"id": %d}' % n, 0) for n in range(start, end)], HURT.partition
    )
    [[chunk]] = world.topics.locate([OffsetRange(HURT, start, end)])  # type: ignore[attr-defined]
    return world.folder / "log" / chunk.path


def tear(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-7])


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("hurt", "words"),
    [
        (tear, "is torn: it is shorter"),
        (flip, "is corrupt: its checksum differs"),
        (Path.unlink, "is missing"),
    ],
)
def test_a_damaged_segment_stops_the_job_by_its_name_and_once_restored_it_goes_on(
    world: World, hurt: Callable[[Path], None], words: str
) -> None:
    world.topics.create("in", 2)
    put(world, 0, 10)
    world.run(copy_job)
    world.settle()
    file = put(world, 10, 15)
    sound = file.read_bytes()
    hurt(file)
    world.until(lambda: any(e.kind == "failed" for e in world.events))
    event = next(e for e in world.events if e.kind == "failed")
    for part in (words, file.name, "topic in, partition 1, offsets 10 to 15", "restore the file"):
        assert part in event.text, event.details
    assert "\n" not in event.text
    assert len(world.rows("out")) == 10
    file.write_bytes(sound)
    world.settle()
    assert sorted(row["id"] for row in world.rows("out")) == list(range(15))
