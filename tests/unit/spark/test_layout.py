"""Generations, epochs and first offsets on disk; what a killed run leaves is swept."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.ids import TopicPartition
from penstock.spark.layout import initial_offsets, open_layout, sweep, tasks_before, write_durably

PLACE = TopicPartition("in", 0)


def test_a_run_is_a_new_epoch_and_another_shape_a_new_generation(tmp_path: Path) -> None:
    runs = [(1, {"in": 4}), (1, {"in": 4}), (2, {"in": 4}), (2, {"in": 4}), (2, {"in": 8})]
    made = [open_layout(tmp_path, "copy", tasks, shape) for tasks, shape in runs]
    assert [(m.generation, m.epoch) for m in made] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]
    assert made[-1].checkpoint(1) == tmp_path / "copy" / "g3" / "1"
    assert tasks_before(tmp_path, "copy") == 2
    assert tasks_before(tmp_path, "other") == 0


def test_a_generations_first_offsets_are_written_once(tmp_path: Path) -> None:
    layout = open_layout(tmp_path, "copy", 1, {"in": 1})
    assert initial_offsets(layout, 0, lambda: {PLACE: 7}) == {PLACE: 7}
    again = open_layout(tmp_path, "copy", 1, {"in": 1})
    assert initial_offsets(again, 0, lambda: pytest.fail("asked again")) == {PLACE: 7}
    anew = open_layout(tmp_path, "copy", 2, {"in": 1})
    assert initial_offsets(anew, 0, lambda: {PLACE: 9}) == {PLACE: 9}


def test_what_a_killed_run_left_half_written_is_swept_and_nothing_else(tmp_path: Path) -> None:
    kept = ["offsets/0", "commits/0", "metadata", "state/0/1/1.delta", "state/0/1/1.tmp", "offsets/.hidden"]
    left = [
        "offsets/.1.8f3c.tmp",
        "offsets/.0.crc",
        "commits/..0.77.tmp.crc",
        "state/0/1/.1.delta.crc",
        ".metadata.crc",
    ]
    for name in kept + left:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
    assert sweep(tmp_path) == len(left)
    assert sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file()) == sorted(kept)
    assert sweep(tmp_path) == 0


def test_a_checkpoint_that_is_not_there_yet_needs_no_sweep(tmp_path: Path) -> None:
    assert sweep(tmp_path / "g1" / "0") == 0


def test_a_file_is_replaced_whole(tmp_path: Path) -> None:
    file = tmp_path / "layout.json"
    write_durably(file, "old")
    write_durably(file, "new")
    assert file.read_text() == "new" and list(tmp_path.iterdir()) == [file]
