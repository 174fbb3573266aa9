"""Files that become pipelines: what is read, what is forgotten between loads, and whose line an error names."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from penstock.authoring import load_pipeline
from penstock.authoring.loader import find_pipeline
from penstock.authoring.options import read_job_options
from penstock.model.errors import MissingError, SpecError

GOOD = """
from penstock import job, topic

a = topic("a", schema="n long")

@job(reads=a, writes="b", threads=2)
def copy(rows):
    return rows
"""


def write(folder: Path, text: str, name: str = "pipeline.py") -> Path:
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(text)
    return file


def refusal(path: Path) -> SpecError:
    with pytest.raises(SpecError) as caught:
        load_pipeline(path)
    error = caught.value
    assert error.field and error.problem and error.remedy and error.place
    return error


def test_a_folder_is_its_pipeline(tmp_path: Path) -> None:
    write(tmp_path / "shop", GOOD)
    loaded = load_pipeline(tmp_path / "shop")
    assert loaded.spec.name == "shop" and loaded.folder == tmp_path / "shop"
    assert [j.name for j in loaded.spec.jobs] == ["copy"] and [t.name for t in loaded.spec.topics] == ["a"]
    assert loaded.functions["copy"]("rows") == "rows" and loaded.foreach == {}
    assert loaded.spec.jobs[0].place.endswith("pipeline.py:6")


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("orders.py", "orders"),
        ("my orders!.py", "my-orders"),
        ("2024.py", "pipeline-2024"),
        ("…….py", "pipeline"),
    ],
)
def test_a_file_is_named_for_itself(tmp_path: Path, file: str, name: str) -> None:
    assert load_pipeline(write(tmp_path, GOOD, file)).spec.name == name


def test_what_is_not_there_is_said_with_what_to_do(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.py"):
        with pytest.raises(MissingError, match="penstock init"):
            load_pipeline(path)
    with pytest.raises(SpecError, match="is not a Python file"):
        find_pipeline(write(tmp_path, "x", "notes.txt"))


def test_a_file_without_jobs_is_refused(tmp_path: Path) -> None:
    assert "declares no job" in refusal(write(tmp_path, "x = 1")).problem


def test_an_error_in_the_file_names_its_line(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, "import os\n\nos.nothing()\n"))
    assert error.place.endswith("pipeline.py:3") and "AttributeError" in error.problem


def test_an_error_in_a_module_beside_it_names_that_line(tmp_path: Path) -> None:
    write(tmp_path, "\n\n1 / 0\n", "beside_broken.py")
    error = refusal(write(tmp_path, "import beside_broken\n"))
    assert error.place.endswith("beside_broken.py:3") and "ZeroDivisionError" in error.problem


def test_what_does_not_parse_names_its_line(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, "x = 1\ndef f(:\n"))
    assert error.place.endswith("pipeline.py:2") and "does not parse" in error.problem


def test_a_file_that_ends_the_program_does_not_end_ours(tmp_path: Path) -> None:
    assert "SystemExit" in refusal(write(tmp_path, "import sys\nsys.exit(3)\n")).problem


def test_using_spark_too_early_says_how_it_is_meant(tmp_path: Path) -> None:
    text = "raise RuntimeError('[SESSION_OR_CONTEXT_NOT_EXISTS] no session')\n"
    assert "inside the jobs' functions" in refusal(write(tmp_path, text)).remedy


def test_a_refused_declaration_keeps_its_own_place(tmp_path: Path) -> None:
    error = refusal(write(tmp_path, "from penstock import topic\n\ntopic('a', schema='n lon')\n"))
    assert error.field == "schema" and error.place.endswith("pipeline.py:3")


def test_nothing_is_kept_between_loads(tmp_path: Path) -> None:
    file = write(tmp_path, GOOD)
    first = load_pipeline(file)
    write(tmp_path, GOOD.replace("copy", "other"))
    assert [j.name for j in load_pipeline(file).spec.jobs] == ["other"]
    assert [j.name for j in first.spec.jobs] == ["copy"]


def test_modules_beside_it_are_read_afresh_and_shipped(tmp_path: Path) -> None:
    write(tmp_path, "NAME = 'one'\n", "beside_fresh.py")
    file = write(
        tmp_path,
        GOOD.replace("a = topic", "import beside_fresh\na = topic").replace('"b"', "beside_fresh.NAME"),
    )
    loaded = load_pipeline(file)
    assert loaded.spec.jobs[0].output_topics == ("one",)
    assert {m.__name__ for m in loaded.modules} == {loaded.module.__name__, "beside_fresh"}
    write(tmp_path, "NAME = 'another'\n", "beside_fresh.py")
    assert load_pipeline(file).spec.jobs[0].output_topics == ("another",)


def test_the_import_path_is_left_as_it_was(tmp_path: Path) -> None:
    before = list(sys.path)
    load_pipeline(write(tmp_path, GOOD))
    refusal(write(tmp_path, "1 / 0\n"))
    assert sys.path == before


def test_topics_given_as_objects_count_as_declared(tmp_path: Path) -> None:
    write(
        tmp_path,
        "from penstock import topic\nshared = topic('shared', schema='n long')\n",
        "beside_topics.py",
    )
    text = GOOD.replace("a = topic", "from beside_topics import shared\na = topic").replace('"b"', "shared")
    assert [t.name for t in load_pipeline(write(tmp_path, text)).spec.topics] == ["shared", "a"]


# Options of settings


def test_settings_are_laid_under_and_over_what_is_declared(tmp_path: Path) -> None:
    loaded = load_pipeline(write(tmp_path, GOOD))
    under = read_job_options({"threads": 9, "slo_lag": "1m", "scaling": {"warm_up_windows": 7}})
    over = {"copy": read_job_options({"trigger": "4s", "scaling": {"min_change": 2}})}
    options = loaded.tuned(under, over).spec.jobs[0].options
    assert (options.threads, options.slo_lag_seconds, options.interval_seconds) == (2, 60.0, 4.0)
    assert (options.scaling.warm_up_windows, options.scaling.min_change) == (7, 2)
    assert loaded.spec.jobs[0].options.slo_lag_seconds == 30.0


def test_settings_for_a_job_that_is_not_there_are_refused(tmp_path: Path) -> None:
    loaded = load_pipeline(write(tmp_path, GOOD))
    with pytest.raises(SpecError, match="nearest is 'copy'") as caught:
        loaded.tuned({}, {"coppy": {}}, "penstock.toml:3")
    assert (caught.value.field, caught.value.value, caught.value.place) == (
        "jobs",
        "coppy",
        "penstock.toml:3",
    )


def test_relative_paths_begin_at_the_pipelines_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    project.mkdir()
    elsewhere.mkdir()
    (project / "pipeline.py").write_text(
        """
from penstock import job, sink, source, topic

a = topic("a", schema="n long")
limits = source("csv", "n long", static=True, path="limits.csv", header=True)
far = source("csv", "n long", static=True, path="s3://bucket/limits.csv")
fixed = source("csv", "n long", static=True, path="/data/limits.csv")

@job(reads=[a, limits, far, fixed], writes=sink("parquet", path="out"))
def keep(a, limits, far, fixed):
    return a
"""
    )
    monkeypatch.chdir(elsewhere)
    (spec,) = load_pipeline(project).spec.jobs
    paths = [each.source.options["path"] for each in spec.inputs if each.source is not None]
    assert paths == [str(project / "limits.csv"), "s3://bucket/limits.csv", "/data/limits.csv"]
    assert spec.outputs[0].sink is not None and spec.outputs[0].sink.options["path"] == str(project / "out")
