"""Code on pages works: Python blocks load and pass all checks that need no Spark, settings are understood."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from architecture.repository import ROOT, guides, texts
from penstock.app.settings import load_settings
from penstock.authoring import check_pipeline, load_pipeline
from penstock.authoring.registry import collecting

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def _blocks(kind: str) -> list[object]:
    found: list[object] = []
    for page, text in guides().items():
        blocks = [block for k, block in _FENCE.findall(text) if k == kind]
        found += [pytest.param(block, id=f"{page}-{i}") for i, block in enumerate(blocks, start=1)]
    return found


@pytest.mark.parametrize("block", _blocks("python"))
def test_python_on_a_page_loads(block: str, tmp_path: Path) -> None:
    file = tmp_path / "pipeline.py"
    file.write_text(block)
    if "@job" in block:
        assert not check_pipeline(load_pipeline(file))
    else:
        with collecting():
            exec(compile(block, str(file), "exec"), {})


@pytest.mark.parametrize("block", _blocks("toml"))
def test_settings_on_a_page_are_understood(block: str, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text(block)
    for profile in ("embedded", *re.findall(r"^\[profiles\.(\w+)", block, re.MULTILINE)):
        load_settings(tmp_path, profile)


def test_the_first_job_that_people_see_is_the_example() -> None:
    shown = next(block for kind, block in _FENCE.findall(texts()["README.md"]) if kind == "python")
    assert texts()["examples/wordcount/pipeline.py"].endswith(shown)


@pytest.mark.parametrize("folder", sorted(path.parent.name for path in ROOT.glob("examples/*/pipeline.py")))
def test_every_example_is_in_order(folder: str) -> None:
    assert not check_pipeline(load_pipeline(ROOT / "examples" / folder))
