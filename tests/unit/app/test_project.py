"""A new project works as it is, and nothing that is there is touched."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from penstock.app.project import TEMPLATE, create_project, settings_text
from penstock.app.sections import SECTIONS
from penstock.app.settings import load_settings
from penstock.authoring import check_pipeline, load_pipeline
from penstock.authoring.options import ALIASES
from penstock.authoring.reading import friendly_name
from penstock.model.errors import SpecError
from penstock.model.jobs import JobOptions


def test_what_init_writes_loads_and_has_no_problem(tmp_path: Path) -> None:
    written = create_project(tmp_path / "shop")
    assert {path.name for path in written} == {"pipeline.py", "penstock.toml", "README.md", ".gitignore"}
    pipeline = load_pipeline(tmp_path / "shop")
    assert check_pipeline(pipeline) == []
    assert [job.name for job in pipeline.spec.jobs] == ["rate", "summarise"]
    settings = load_settings(tmp_path / "shop")
    assert settings.project.name == "shop" and settings.spark == load_settings(tmp_path).spark


def test_the_readme_has_five_lines_and_a_template_of_what_the_pipeline_reads(tmp_path: Path) -> None:
    readme = next(path for path in create_project(tmp_path / "shop") if path.suffix == ".md").read_text()
    assert TEMPLATE in readme and "{{" not in readme
    assert len([line for line in readme.splitlines() if line]) == 5


def test_every_default_in_the_file_is_the_default(tmp_path: Path) -> None:
    """Uncommented, the file says what holds without it."""
    text = re.sub(r"^#(\w+ = (?!\(none\)).*)$", r"\1", settings_text("shop"), flags=re.MULTILINE)
    text = re.sub(r"^max_threads = 16$", "", text, flags=re.MULTILINE)
    text = text[: text.index("# A profile changes")]
    (tmp_path / "penstock.toml").write_text(text)
    spoken, silent = load_settings(tmp_path), load_settings(tmp_path / "none")
    for section in SECTIONS:
        if section != "project":
            assert getattr(spoken, section) == getattr(silent, section)
    assert JobOptions.model_validate(spoken.defaults) == JobOptions()


def test_every_setting_is_in_the_file() -> None:
    text = settings_text("shop")
    tables = tomllib.loads(text)
    assert set(tables) == {*SECTIONS, "defaults"}
    for model in (*SECTIONS.values(), JobOptions):
        for name in model.model_fields:
            assert re.search(rf"^#?{friendly_name(name, ALIASES)} = ", text, re.MULTILINE), name


@pytest.mark.parametrize("there", ["pipeline.py", "penstock.toml", "README.md"])
def test_nothing_that_is_there_is_overwritten(tmp_path: Path, there: str) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(SpecError, match=rf"already has {re.escape(there)}.*nothing was written"):
        create_project(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_what_a_repository_ignores_already_stays(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").write_text("mine")
    written = create_project(tmp_path)
    assert (tmp_path / ".gitignore").read_text() == "mine" and len(written) == 3


def test_a_file_in_the_way_of_the_folder_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(Exception, match="could not be written") as caught:
        create_project(tmp_path / "file" / "sub")
    assert getattr(caught.value, "exit_code", None) == 6
