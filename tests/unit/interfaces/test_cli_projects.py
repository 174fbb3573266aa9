"""Commands about a project as it lies there, and how any command fails: a sentence, a code, never a traceback."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from penstock.model.errors import EnvironmentProblem, MissingError, SpecError
from penstock.model.ids import TopicPartition
from penstock.model.status import Check

CHECKS = [
    Check("java", "ok", "Java 21", facts={"version": "21"}),
    Check("memory", "warning", "2 GB", "close something [or buy more]"),
    Check("sink", "problem", "n is missing", "write n", "p.py:7"),
]


def test_the_version_is_printed(command: Any) -> None:
    answer = command("--version")
    assert answer.code == 0 and re.fullmatch(r"penstock \d+\.\d+\.\d+\n", answer.out)


@pytest.mark.parametrize(
    "name",
    [
        "init",
        "validate",
        "run",
        "explain",
        "probe",
        "demo",
        "topic",
        "load",
        "runs",
        "report",
        "bench",
        "doctor",
        "kafka-jars",
        "topic tail",
    ],
)
def test_every_command_says_what_it_does_with_an_example(command: Any, name: str) -> None:
    answer = command(*name.split(), "--help")
    assert answer.code == 0 and "Usage:" in answer.out
    assert name == "topic" or "Example: penstock" in answer.out


@pytest.mark.parametrize("words", [(), ("topic",)])
def test_no_summary_is_cut(command: Any, words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    commands = command(*words, "--help").out.partition("Commands:")[2]
    assert commands and "..." not in commands


def test_what_to_do_next_can_be_pasted(command: Any) -> None:
    assert "penstock run 'my shop'" in command("init", "my shop").out


def test_a_new_project_is_written_and_can_be_loaded(command: Any, services: Any) -> None:
    answer = command("init", "shop")
    assert answer.code == 0 and "wrote" in answer.out and "penstock run shop" in answer.out
    assert {j.name for j in services.load(services.folder / "shop").jobs}
    again = command("init", "shop")
    assert "wrote" not in again.out or again.code != 0


@pytest.mark.parametrize("name", ["validate", "doctor"])
def test_checks_are_a_table_or_json(command: Any, services: Any, name: str) -> None:
    services.checks = CHECKS
    table = command(name)
    for text in ("PROBLEM", "WARNING", "ok", "n is missing", "close something [or buy more]"):
        assert text in table.out
    rows = command(name, "-o", "json").json()
    assert [row["level"] for row in rows] == ["ok", "warning", "problem"]
    assert rows[0]["facts"] == {"version": "21"} and rows[2]["place"] == "p.py:7"


@pytest.mark.parametrize(
    ("name", "code"), [("validate", SpecError.exit_code), ("doctor", EnvironmentProblem.exit_code)]
)
def test_a_problem_ends_with_its_code(command: Any, services: Any, name: str, code: int) -> None:
    services.checks = CHECKS
    assert command(name).code == code and command(name, "-o", "json").code == code
    services.checks = CHECKS[:2]
    assert command(name).code == 0


def test_no_finding_is_said(command: Any) -> None:
    answer = command("validate")
    assert answer.code == 0 and answer.out == "No problem found.\n"


def test_jars_are_named_on_stdout_and_progress_on_stderr(command: Any) -> None:
    answer = command("kafka-jars", "here")
    assert answer.out.startswith("here/a.jar\n") and 'jars = ["here/*.jar"]' in answer.out
    assert answer.err == "fetching\n"


# Failing


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (
            SpecError("threads", 0, "is too few", "give 1 or more", "p.py:3"),
            2,
            "p.py:3: threads = 0 is too few; give 1 or more.",
        ),
        (MissingError("There is no such thing."), 3, "There is no such thing."),
        (EnvironmentProblem("Java is missing."), 6, "Java is missing."),
        (KeyboardInterrupt(), 130, "Stopped."),
    ],
)
def test_an_error_is_a_sentence_on_stderr_and_a_code(
    command: Any, services: Any, error: Exception, code: int, sentence: str
) -> None:
    services.broken = error
    answer = command("run", "p.py")
    assert (answer.code, answer.out, answer.err) == (code, "", f"{sentence}\n")


def test_a_bug_is_one_line_and_a_file(command: Any, services: Any) -> None:
    services.broken = ZeroDivisionError("by\nnothing")
    answer = command("run", "p.py")
    assert answer.code == 70 and "Traceback" not in answer.err
    told = re.fullmatch(
        r"A bug in penstock: ZeroDivisionError: by; the whole of it is in (.*)\.\n", answer.err
    )
    assert told is not None
    with open(told.group(1)) as file:
        assert "ZeroDivisionError: by" in file.read()


@pytest.mark.parametrize(
    "words",
    [
        ("nonsense",),
        ("explain",),
        ("run", "p.py", "--nonsense"),
        ("validate", "-o", "xml"),
        ("topic", "create"),
    ],
)
def test_wrong_usage_is_a_sentence_that_says_where_to_look(command: Any, words: tuple[str, ...]) -> None:
    answer = command(*words)
    assert answer.code == 2 and answer.err.count("\n") == 1 and "--help`" in answer.err


def test_errors_of_nested_commands_are_sentences_too(command: Any) -> None:
    answer = command("topic", "describe", "nowhere")
    assert answer.code == 3 and answer.err.count("\n") == 1


# Benches


def test_benches_show_their_rows_and_fail_on_a_missed_goal(
    command: Any, services: Any, make_bench: Callable[..., Any]
) -> None:
    good = {"name": "probe", "unit": "ms", "ours": 1.5, "peer": 3.0, "ratio": 0.5, "met": True}
    services.bench_list = [
        make_bench("probe", [good]),
        make_bench("slow", [{**good, "name": "slow", "met": False}]),
    ]
    answer = command("bench", "spark", "--only", "probe", "--quick")
    assert answer.code == 0 and services.bench_list[0].quick == [True] and services.bench_list[1].quick == []
    assert "yes" in answer.out and "[1/1] probe: compares two things" in answer.err
    missed = command("bench", "spark", "-o", "json")
    assert missed.code == 1 and "Goals not met: slow." in missed.err
    assert [row["met"] for row in missed.json()] == [True, False]


def test_a_bench_that_is_not_there_lists_those_that_are(command: Any, services: Any, make_bench: Any) -> None:
    services.bench_list = [make_bench("probe", [])]
    answer = command("bench", "spark", "--only", "other")
    assert answer.code == 3 and "there are: probe" in answer.err
    assert command("bench", "nothing").code == 3


# A job starts anew


@pytest.fixture
def counting(command: Any, services: Any) -> Any:
    """A job that has read two of three words."""
    (services.folder / "pipeline.py").write_text(
        "from penstock import job, topic\n"
        "words = topic('words', schema='word string', partitions=1)\n"
        "out = topic('out', schema='word string')\n"
        "@job(reads=words, writes=out)\n"
        "def count(rows):\n    return rows\n"
    )
    command("topic", "create", "words")
    command("topic", "produce", "words", *[f'{{"word": "{letter}"}}' for letter in "abc"])
    topics = services.topics(services.folder, None)
    topics.commit_progress("count", {TopicPartition("words", 0): 2})
    yield topics
    topics.close()


def test_a_job_starts_anew_after_it_was_said_what_is_lost(command: Any, counting: Any) -> None:
    kept = command("reset", "count", given="n\n")
    assert kept.code == 3 and "Nothing was forgotten." in kept.err and counting.progress("count", ["words"])
    done = command("reset", "count", "--yes")
    assert done.out.splitlines() == [
        "forgotten: no state; 2 of 3 records of words read",
        "begins again at: the first record that is kept of words (3 to read)",
        "stays: what it wrote to out; what it reads again is written again",
        "count starts anew with the next run.",
    ]
    assert counting.progress("count", ["words"]) == {}


def test_a_job_may_begin_with_what_comes(command: Any, counting: Any) -> None:
    out = command("reset", "count", "--from", "latest", given="y\n").out
    assert "begins again at: what comes to words from now on" in out
    assert counting.progress("count", ["words"]) == {TopicPartition("words", 0): 3}


def test_a_place_to_begin_that_is_none_is_refused(command: Any, counting: Any) -> None:
    answer = command("reset", "count", "--from", "yesterday", "--yes")
    assert answer.code == 2 and "earliest" in answer.err and counting.progress("count", ["words"])
