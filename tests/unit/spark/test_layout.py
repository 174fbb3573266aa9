"""Generations, epochs and first offsets on disk; what a killed run leaves is swept."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.model.ids import TopicPartition
from penstock.spark.layout import (
    begin_anew,
    goes_on,
    initial_offsets,
    open_layout,
    sweep,
    what_differs,
    write_durably,
)

PLACE = TopicPartition("in", 0)


def test_a_run_is_a_new_epoch_and_another_shape_a_new_generation(tmp_path: Path) -> None:
    runs = [(1, {"in": 4}), (1, {"in": 4}), (2, {"in": 4}), (2, {"in": 4}), (2, {"in": 8})]
    made = [open_layout(tmp_path, "copy", tasks, shape) for tasks, shape in runs]
    assert [(m.generation, m.epoch) for m in made] == [(1, 1), (1, 2), (2, 1), (2, 2), (3, 1)]
    assert made[-1].checkpoint(1) == tmp_path / "copy" / "g3" / "1"


@pytest.mark.parametrize(
    ("tasks", "partitions", "words"),
    [
        (1, {"a": 2}, ""),
        (3, {"a": 2}, "keeps state in 1 tasks and cannot run in 3"),
        (1, {"a": 2, "b": 1}, "topic 'b' is new among its inputs"),
        (1, {"b": 2}, "topic 'a' is no input of it any more"),
        (1, {"a": 4}, "topic 'a' had 2 partitions and has 4 now"),
    ],
)
def test_why_a_job_cannot_go_on_is_told_until_it_is_started_anew(
    tmp_path: Path, tasks: int, partitions: dict[str, int], words: str
) -> None:
    initial_offsets(open_layout(tmp_path, "copy", 1, {"a": 2}), 0, lambda: {PLACE: 7})
    found = what_differs(tmp_path, "copy", tasks, partitions)
    assert words in found and bool(found) == bool(words)
    begin_anew(tmp_path, "copy")
    assert what_differs(tmp_path, "copy", tasks, partitions) == ""
    anew = open_layout(
        tmp_path, "copy", tasks, partitions
    )  # and its topics do not answer: it has not begun yet
    assert what_differs(tmp_path, "copy", tasks + 1, partitions) == ""
    initial_offsets(anew, 0, lambda: {PLACE: 7})
    assert "tasks" in what_differs(tmp_path, "copy", tasks + 1, partitions)


@pytest.mark.parametrize("lost", ["layout.json", "g1"])
def test_a_loss_of_what_is_kept_here_is_told(tmp_path: Path, lost: str) -> None:
    layout = open_layout(tmp_path, "copy", 1, {"a": 2})
    initial_offsets(layout, 0, lambda: {PLACE: 7})
    assert what_differs(tmp_path, "copy", 1, {"a": 2}) == ""
    (tmp_path / "copy" / lost).rename(tmp_path / "away")
    assert lost in what_differs(tmp_path, "copy", 1, {"a": 2})
    begin_anew(tmp_path, "copy")
    assert what_differs(tmp_path, "copy", 1, {"a": 2}) == ""


def test_a_lost_layout_begins_above_what_its_sink_and_its_folder_know(tmp_path: Path) -> None:
    assert open_layout(tmp_path, "by-sink", 1, {"a": 2}, lambda: 4).generation == 5
    assert open_layout(tmp_path, "by-sink", 1, {"a": 2}, lambda: 9).generation == 5
    (tmp_path / "by-folder" / "g7" / "0").mkdir(parents=True)
    assert open_layout(tmp_path, "by-folder", 1, {"a": 2}, lambda: 4).generation == 8


def test_a_run_goes_on_where_its_own_generation_has_a_checkpoint(tmp_path: Path) -> None:
    offsets = open_layout(tmp_path, "copy", 1, {"a": 2}).checkpoint(0) / "offsets"
    offsets.mkdir(parents=True)
    assert not goes_on(tmp_path, "copy", 1, {"a": 2})
    (offsets / "0").touch()
    assert goes_on(tmp_path, "copy", 1, {"a": 2})
    assert not goes_on(tmp_path, "copy", 1, {"a": 4})
    begin_anew(tmp_path, "copy")
    assert not goes_on(tmp_path, "copy", 1, {"a": 2})


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
