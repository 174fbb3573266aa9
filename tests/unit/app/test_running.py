"""What a run is made of is read and checked before anything is started; `validate` says the same without starting."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from penstock.adapters.files.journal import FileJournal
from penstock.app.clock import SystemClock
from penstock.app.running import OVER, PipelineRun, end_of, load_checked, plan_run
from penstock.app.runs import ProjectRuns
from penstock.app.validating import validate
from penstock.model.errors import MissingError, SpecError
from penstock.model.status import JobState, Phase
from penstock.ports.services import RunRequest

GOOD = """
from penstock import job, topic

a = topic("a", schema="n long")
b = topic("b", schema="n long")

@job(reads=a, writes=b, threads=2)
def copy(rows):
    return rows
"""
TWO_PROBLEMS = GOOD.replace("writes=b", 'writes="nowhere"').replace('"n long")\nb', '"n long", key="m")\nb')


def project(folder: Path, text: str = GOOD, toml: str = "") -> Path:
    (folder / "pipeline.py").write_text(text)
    (folder / "penstock.toml").write_text(toml)
    return folder


def refused(request: RunRequest, env: dict[str, str] | None = None) -> str:
    with pytest.raises(SpecError) as caught:
        plan_run(request, env or {})
    return str(caught.value)


def test_a_plan_holds_the_pipeline_with_its_settings_laid_over(tmp_path: Path) -> None:
    toml = '[project]\nname = "shop"\n[defaults]\nslo_lag = "9s"\n[jobs.copy]\nmax_threads = 5\n'
    request = RunRequest(
        project(tmp_path, toml=toml), strategy="ds2", available_now=True, overrides={"spark.slots": "3"}
    )
    plan = plan_run(request, {"PENSTOCK_SPARK_HEAP": "900m"})
    (job,) = plan.pipeline.spec.jobs
    assert (job.options.slo_lag_seconds, job.options.max_threads, job.options.threads) == (9.0, 5, 2)
    assert (plan.settings.spark.slots, plan.settings.spark.heap) == (3, "900m")
    assert (plan.name, plan.strategy, plan.available_now) == ("shop", "ds2", True)


def test_a_plan_without_a_projects_name_has_the_pipelines(tmp_path: Path) -> None:
    assert plan_run(RunRequest(project(tmp_path)), {}).name == tmp_path.name


def test_one_problem_is_said_as_it_is(tmp_path: Path) -> None:
    text = refused(RunRequest(project(tmp_path, GOOD.replace("writes=b", 'writes="nowhere"'))))
    assert "pipeline.py:7: writes = 'nowhere'" in text and "more:" not in text


def test_of_many_problems_the_first_is_said_and_how_many_more(tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        load_checked(project(tmp_path, TWO_PROBLEMS))
    assert caught.value.field == "key" and caught.value.place.endswith("pipeline.py:4")
    assert "and 1 more: `penstock validate` lists all" in str(caught.value)


def test_a_strategy_that_nobody_knows_is_refused_with_those_there_are(tmp_path: Path) -> None:
    text = refused(RunRequest(project(tmp_path), strategy="guess"))
    assert "'guess'" in text and "ds2" in text


def test_a_setting_of_a_job_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "'coppy'" in refused(RunRequest(project(tmp_path, toml="[jobs.coppy]\nthreads = 3\n")))


def test_an_option_that_settings_make_impossible_is_said_at_the_settings_line(tmp_path: Path) -> None:
    toml = "\n\n[jobs.copy]\nmax_threads = 1\nmin_threads = 4\n"
    text = refused(RunRequest(project(tmp_path, toml=toml)))
    assert "penstock.toml:" in text and "max_threads" in text


def test_a_problem_that_only_settings_bring_about_names_them(tmp_path: Path) -> None:
    toml = "[defaults]\ntasks = 3\nmax_tasks = 2\n"
    text = refused(RunRequest(project(tmp_path, toml=toml)))
    assert "tasks" in text and "penstock.toml" in text


def test_a_profile_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert "'nowhere' is no profile" in refused(RunRequest(project(tmp_path), profile="nowhere"))


def test_a_folder_without_a_pipeline_is_missing(tmp_path: Path) -> None:
    with pytest.raises((MissingError, SpecError), match=r"pipeline\.py"):
        plan_run(RunRequest(tmp_path), {})


# How a run ends


@pytest.mark.parametrize(
    ("states", "phase"),
    [
        ({"stopped"}, "ended"),
        ({"drained", "stopped"}, "ended"),
        ({"stopped", "fenced"}, "failed"),
        ({"drained", "failed"}, "failed"),
        ({"fenced"}, "failed"),
    ],
)
def test_a_run_has_failed_when_one_of_its_jobs_has(states: set[JobState], phase: Phase) -> None:
    assert states <= OVER and end_of(states) == phase


def test_a_job_that_may_go_on_ends_no_run() -> None:
    assert OVER.isdisjoint({"starting", "running", "restarting", "draining"})


@pytest.mark.parametrize(("given", "bound"), [({}, 64 << 20), ({"store.journal": "2m"}, 2 << 20)])
def test_the_bound_of_a_runs_journal_is_the_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: dict[str, str], bound: int
) -> None:
    """The run ends before Spark starts, for want of a jar; its journal is open by then."""
    bounds: list[int] = []

    class Noted(FileJournal):
        def __init__(self, runs: Path, run: str, bound_bytes: int = 0) -> None:
            bounds.append(bound_bytes)
            super().__init__(runs, run, bound_bytes)

    monkeypatch.setattr("penstock.app.running.FileJournal", Noted)
    request = RunRequest(project(tmp_path), overrides={"spark.jars": "nowhere.jar", **given})
    with pytest.raises(MissingError, match=r"nowhere\.jar"):
        PipelineRun(plan_run(request, {}), SystemClock(), lambda text: None)
    assert bounds == [bound]


class Host:
    """A container that cannot even stop."""

    def stop(self) -> None:
        raise RuntimeError("the JVM is deaf")


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], PipelineRun]:
    """Makes runs whose container is none of Spark's."""

    def start(run: PipelineRun, progress: Callable[[str], None]) -> None:
        run._host = cast("Any", Host())
        run.reporter = cast("Any", SimpleNamespace(phase="running"))

    monkeypatch.setattr(PipelineRun, "_start", start)
    request = RunRequest(project(tmp_path))
    return lambda: PipelineRun(plan_run(request, {}), SystemClock(), lambda text: None)


def test_a_run_whose_container_does_not_stop_lets_go_of_all_else(begun: Callable[[], PipelineRun]) -> None:
    run = begun()
    with pytest.raises(RuntimeError, match="deaf"):
        run.close()
    other = begun()  # the project's lock and topics are free
    with pytest.raises(RuntimeError, match="deaf"):
        other.close()


def test_a_run_that_fails_before_its_first_status_says_so_in_its_last(
    begun: Callable[[], PipelineRun],
) -> None:
    run = begun()
    run.fail("Spark's JVM has ended.")
    with pytest.raises(RuntimeError, match="deaf"):
        run.close()
    last = ProjectRuns(run.folder.parent).last_status(run.header.run)
    assert last is not None and (last.phase, last.message) == ("failed", "Spark's JVM has ended.")
    assert run.status() == last


# What validate finds without Spark


def test_validate_lists_every_problem_with_its_line_and_remedy(tmp_path: Path) -> None:
    found = validate(project(tmp_path, TWO_PROBLEMS), None, {})
    assert [(c.name, c.level) for c in found] == [("key", "problem"), ("writes", "problem")]
    assert all(c.remedy and "pipeline.py:" in c.place for c in found)
    assert "'m'" in found[0].text and "'nowhere'" in found[1].text


@pytest.mark.parametrize(
    ("text", "toml", "word"),
    [
        ("from penstock import job\njob(", "", "pipeline"),
        (GOOD, "[spark]\nslots = 0\n", "slots"),
        (GOOD, "[jobs.coppy]\nthreads = 3\n", "jobs"),
        (GOOD, "[spark\n", "penstock.toml"),
    ],
)
def test_what_cannot_be_read_is_a_problem_too(tmp_path: Path, text: str, toml: str, word: str) -> None:
    (only,) = validate(project(tmp_path, text, toml), None, {})
    assert only.level == "problem" and word in f"{only.name} {only.text} {only.place}" and only.remedy


def test_a_profile_that_nobody_wrote_is_a_problem(tmp_path: Path) -> None:
    (only,) = validate(project(tmp_path), "nowhere", {})
    assert only.level == "problem" and "'nowhere' is no profile" in only.text
