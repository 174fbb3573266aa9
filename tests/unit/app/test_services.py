"""What commands ask for: each refusal is a sentence, and nothing is started or made on the way to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from penstock.app.services import AppServices
from penstock.model.errors import MissingError, PenstockError, SpecError
from penstock.ports.services import RunRequest

PIPELINE = """
from penstock import job, topic

a = topic("a", schema="n long")

@job(reads=a, writes="b")
def copy(rows):
    return rows
"""


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> AppServices:
    for name in ("PENSTOCK_SPARK_SLOTS", "PENSTOCK_BUS_KIND"):
        monkeypatch.delenv(name, raising=False)
    return AppServices()


def silent(text: str) -> None:
    raise AssertionError(f"nothing was to be done: {text}")


def test_a_new_project_can_be_loaded(services: AppServices, tmp_path: Path) -> None:
    services.create_project(tmp_path / "shop")
    assert [job.name for job in services.load(tmp_path / "shop").jobs] == ["rate", "summarise"]
    with pytest.raises(SpecError, match="nothing was written"):
        services.create_project(tmp_path / "shop")


def test_what_cannot_run_is_refused_before_anything_starts(services: AppServices, tmp_path: Path) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    for file in (tmp_path, tmp_path / "pipeline.py"):
        with pytest.raises(SpecError, match="nobody declares"):
            services.start(RunRequest(file), silent)
        with pytest.raises(SpecError, match="nobody declares"):
            services.load(file)
    assert [c.level for c in services.validate(tmp_path, None)] == ["problem"]
    assert not (tmp_path / ".penstock").exists(), "nothing was made"


def test_a_pipeline_that_is_not_there_is_a_sentence(services: AppServices, tmp_path: Path) -> None:
    with pytest.raises(PenstockError, match="nowhere"):
        services.load(tmp_path / "nowhere")


def test_no_run_yet_is_a_sentence_that_says_how_to_start_one(services: AppServices, tmp_path: Path) -> None:
    runs = services.runs(tmp_path)
    assert runs.runs() == []
    with pytest.raises(MissingError, match="penstock run"):
        runs.history()


def test_settings_that_cannot_be_are_refused_by_all_that_read_them(
    services: AppServices, tmp_path: Path
) -> None:
    (tmp_path / "penstock.toml").write_text("[spark]\nslots = 0\n")
    for ask in (
        lambda: services.topics(tmp_path, None),
        lambda: services.runs(tmp_path),
        lambda: services.doctor(tmp_path, None),
    ):
        with pytest.raises(SpecError, match="slots"):
            ask()


def test_the_environment_is_read(
    services: AppServices, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_SPARK_SLOTS", "none")
    with pytest.raises(SpecError, match="PENSTOCK_SPARK_SLOTS"):
        services.runs(tmp_path)


def test_a_profile_that_is_not_there_is_refused(services: AppServices, tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="'nowhere' is no profile"):
        services.topics(tmp_path, "nowhere")


def test_the_projects_topics_are_its_log(services: AppServices, tmp_path: Path) -> None:
    topics = services.topics(tmp_path, None)
    assert topics.kind == "log" and topics.topics() == []
    topics.close()


def test_benchmarks_that_nobody_has_are_missing(services: AppServices) -> None:
    assert next(bench.name for bench in services.benches("decision")) == "operators-10"
    with pytest.raises(MissingError, match=r"'speed'.*spark, decision"):
        services.benches("speed")


def test_looking_makes_nothing(services: AppServices, tmp_path: Path) -> None:
    topics = services.topics(tmp_path, None, make=False)
    assert topics.topics() == [] and services.runs(tmp_path).runs() == []
    with pytest.raises(MissingError, match="no topic 'x'"):
        topics.describe("x")
    topics.close()
    services.doctor(tmp_path, None)
    assert list(tmp_path.iterdir()) == []


def test_looking_sees_what_was_made(services: AppServices, tmp_path: Path) -> None:
    made = services.topics(tmp_path, None)
    made.create("x", 1)
    made.close()
    seen = services.topics(tmp_path, None, make=False)
    assert seen.topics() == ["x"]
    seen.close()


def test_a_project_that_is_not_there_is_refused_and_not_made(services: AppServices, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    for ask in (
        lambda: services.topics(nowhere, None),
        lambda: services.runs(nowhere),
        lambda: services.doctor(nowhere, None),
    ):
        with pytest.raises(MissingError, match=r"no project at .*nowhere.*--project"):
            ask()
    assert not nowhere.exists()


def test_a_pipelines_file_stands_for_its_folder(services: AppServices, tmp_path: Path) -> None:
    (tmp_path / "penstock.toml").write_text("[spark]\nslots = 0\n")
    (tmp_path / "pipeline.py").write_text(PIPELINE)
    with pytest.raises(SpecError, match="slots"):
        services.runs(tmp_path / "pipeline.py")


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("[jobs.cpoy]\nthreads = 2\n", 2, "'cpoy' is no job of this pipeline"),
        ("[defaults]\nthreads = 1\n[jobs.copy]\nslo_lag = '1s'\n", 4, "is not above the trigger"),
        ("[jobs.copy]\nthreads = 9\nmax_threads = 4\n", 3, "is outside its limits"),
    ],
)
def test_what_settings_make_wrong_is_named_where_it_was_set(
    services: AppServices, tmp_path: Path, text: str, line: int, found: str
) -> None:
    (tmp_path / "pipeline.py").write_text(PIPELINE.replace('"b"', 'topic("b", schema="n long")'))
    (tmp_path / "penstock.toml").write_text(text)
    (check,) = services.validate(tmp_path, None)
    assert check.place == f"{tmp_path / 'penstock.toml'}:{line}" and found in check.text
