"""How large jobs were, from one run to the next."""

from __future__ import annotations

from pathlib import Path

import pytest

from containers import FakeContainer
from penstock.app.sizes import FILE, SizesKept, read_sizes
from penstock.core.jobs.first_sizes import Remembered
from penstock.model.jobs import Input, JobOptions, JobSpec, Output

JOBS = [
    JobSpec(
        name=name,
        inputs=(Input(topic="in", view="in"),),
        outputs=(Output(topic="out"),),
        options=JobOptions(threads=declared),
    )
    for name, declared in (("split", 1), ("count", 2))
]


def test_sizes_are_noted_whenever_they_change(tmp_path: Path) -> None:
    container = FakeContainer({"split": 1, "count": 2})
    loop = SizesKept(tmp_path, JOBS, container)
    assert loop.step(10.0) == 11.0
    assert read_sizes(tmp_path) == {"split": Remembered(1, 1), "count": Remembered(2, 2)}
    container.set_threads("count", 20)
    loop.step(11.0)
    assert read_sizes(tmp_path)["count"] == Remembered(20, 2)
    (tmp_path / FILE).unlink()
    loop.step(12.0)
    assert not (tmp_path / FILE).exists(), "nothing changed, nothing is written"


@pytest.mark.parametrize(
    "text", [None, "", "{", "[1]", '{"split": 3}', '{"split": ["a", 1]}', '{"split": [1]}']
)
def test_a_note_that_cannot_be_read_is_none(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / FILE).write_text(text)
    assert read_sizes(tmp_path) == {}


def test_a_note_that_cannot_be_written_is_tried_again_and_troubles_nobody(tmp_path: Path) -> None:
    loop = SizesKept(tmp_path / "work", JOBS, FakeContainer({"split": 1, "count": 2}))
    loop.step(10.0)
    (tmp_path / "work").mkdir()
    loop.step(11.0)
    assert read_sizes(tmp_path / "work")["split"] == Remembered(1, 1)
