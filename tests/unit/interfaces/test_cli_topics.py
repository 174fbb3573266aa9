"""`penstock topic` and `penstock load` over a real log on a temporary folder: tables, JSON, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.app.parts import ProjectLock
from penstock.model.ids import TopicPartition

PIPELINE = """
from penstock import job, topic
lines = topic("lines", schema="line string", partitions=3)

@job(reads=lines, writes="out")
def copy(rows):
    return rows
"""


def fill(command: Any, *values: str, name: str = "words", partitions: int = 1) -> None:
    command("topic", "create", name, "--partitions", str(partitions))
    assert command("topic", "produce", name, *values).code == 0


def test_a_topic_is_made_once(command: Any) -> None:
    assert command("topic", "create", "words", "--partitions", "3").out == "made words with 3 partitions\n"
    assert "already there: words" in command("topic", "create", "words", "--partitions", "3").out
    assert command("topic", "create", "plain").out == "made plain with 8 partitions\n"


def test_a_declared_topic_is_made_as_declared(command: Any, services: Any) -> None:
    (services.folder / "pipeline.py").write_text(PIPELINE)
    assert command("topic", "create", "lines").out == "made lines with 3 partitions\n"


def test_settings_are_given_by_kafkas_names(command: Any) -> None:
    command("topic", "create", "words", "--config", "retention.ms=60000")
    assert "retention.ms=60000" in command("topic", "describe", "words").out
    assert command("topic", "describe", "words", "-o", "json").json()["config"] == {"retention.ms": "60000"}
    refused = command("topic", "create", "more", "--config", "retention")
    assert refused.code == 2 and "is not name=value" in refused.err


def test_topics_are_listed(command: Any) -> None:
    assert (
        "No topic yet" in command("topic", "list").out and command("topic", "list", "-o", "json").json() == []
    )
    fill(command, "a", "b")
    (row,) = command("topic", "list", "-o", "json").json()
    assert (row["topic"], row["partitions"], row["records"]) == ("words", 1, 2)
    assert "words" in command("topic", "list").out


def test_a_topic_is_described_partition_by_partition(command: Any) -> None:
    fill(command, *"abcdef", partitions=2)
    told = command("topic", "describe", "words", "-o", "json").json()
    assert [p["partition"] for p in told["partitions"]] == [0, 1]
    assert sum(p["records"] for p in told["partitions"]) == 6
    assert "6 records in 2 partitions" in command("topic", "describe", "words").out


def test_records_go_in_and_come_out(command: Any) -> None:
    fill(command, "to", "be")
    assert command("topic", "tail", "words").out == "0@0\t-\tto\n0@1\t-\tbe\n"
    assert command("topic", "tail", "words", "-n", "1").out == "0@1\t-\tbe\n"
    assert command("topic", "tail", "words", "-n", "0").out == ""
    assert command("topic", "tail", "words", "-n", "0", "--all").out.count("\n") == 2


def test_records_come_from_stdin_with_keys(command: Any) -> None:
    command("topic", "create", "words", "--partitions", "1")
    answer = command("topic", "produce", "words", "--keyed", given="a\t1\nb\t2\n")
    assert "appended 2 records to words" in answer.err
    rows = [json.loads(line) for line in command("topic", "tail", "words", "-o", "json").out.splitlines()]
    assert [(r["key"], r["value"], r["offset"]) for r in rows] == [("a", "1", 0), ("b", "2", 1)]
    assert command("topic", "produce", "words", "--key", "k", "v").code == 0
    assert "k\tv" in command("topic", "tail", "words", "-n", "1").out


@pytest.mark.parametrize(
    ("words", "given", "code", "text"),
    [
        (("produce", "words", "--keyed"), "a\t1\nno tab\n", 2, "line 2: record"),
        (("produce", "words", "x", "--key", "k", "--keyed"), None, 2, "--keyed"),
        (("produce", "nowhere", "x"), None, 3, "nowhere"),
        (("tail", "nowhere"), None, 3, "nowhere"),
        (("describe", "nowhere"), None, 3, "nowhere"),
        (("delete", "nowhere", "--yes"), None, 3, "nowhere"),
        (("create", "no name"), None, 2, "is not a name"),
        (("create", "x", "--partitions", "0"), None, 2, "--partitions"),
    ],
)
def test_what_cannot_be_done_is_refused(
    command: Any, words: tuple[str, ...], given: str | None, code: int, text: str
) -> None:
    command("topic", "create", "words")
    answer = command("topic", *words, given=given)
    assert (answer.code, answer.err.count("\n")) == (code, 1) and text in answer.err


def test_deleting_asks_first(command: Any) -> None:
    fill(command, "a")
    kept = command("topic", "delete", "words", given="n\n")
    assert kept.code == 3 and "Nothing was deleted." in kept.err
    assert "deleted words" in command("topic", "delete", "words", given="y\n").out
    fill(command, "a")
    assert "deleted words" in command("topic", "delete", "words", "--yes").out
    assert command("topic", "list", "-o", "json").json() == []


def test_what_runs_loses_no_topic(command: Any, services: Any) -> None:
    fill(command, "a")
    running = ProjectLock(services.folder / "work")
    refused = command("topic", "delete", "words", "--yes")
    assert refused.code == 4 and "going on already" in refused.err and "end it first" in refused.err
    running.release()
    assert command("topic", "delete", "words", "--yes").code == 0


def test_who_has_read_a_deleted_topic_is_said(command: Any, services: Any) -> None:
    fill(command, "a")
    topics = services.topics(services.folder, None)
    topics.commit_progress("count", {TopicPartition("words", 0): 1})
    topics.close()
    out = command("topic", "delete", "words", "--yes").out
    assert "It was read by count" in out and "`penstock reset JOB`" in out


def test_lag_of_no_reader_is_said(command: Any) -> None:
    fill(command, "a")
    assert "No reader has said how far it is." in command("topic", "lag").out


# Load


def test_a_load_appends_what_is_due(command: Any) -> None:
    command("topic", "create", "words", "--partitions", "1")
    answer = command("load", "words", "--rate", "1000/s", "--for", "100ms", "--words", "3")
    assert answer.code == 0 and answer.out.startswith("appended 100 records in")
    (row,) = command("topic", "list", "-o", "json").json()
    assert row["records"] == 100
    assert len(command("topic", "tail", "words", "-n", "1").out.split("\t")[2].split()) == 3


def test_a_declared_topic_is_made_and_filled_by_its_columns(command: Any, services: Any) -> None:
    (services.folder / "pipeline.py").write_text(PIPELINE)
    assert command("load", "lines", "--rate", "500/s", "--for", "50ms").code == 0
    (row,) = command("topic", "list", "-o", "json").json()
    assert (row["partitions"], row["records"]) == (3, 25)
    line = command("topic", "tail", "lines", "--all", "-o", "json").out.splitlines()[0]
    assert set(json.loads(json.loads(line)["value"])) == {"line"}


def test_the_same_seed_makes_the_same_records(command: Any) -> None:
    def values(name: str, seed: str) -> list[str]:
        command("topic", "create", name, "--partitions", "1")
        command(
            "load",
            name,
            "--rate",
            "500/s",
            "--for",
            "50ms",
            "--template",
            "{word} {int:1:99}",
            "--seed",
            seed,
        )
        return [line.split("\t")[2] for line in command("topic", "tail", name, "--all").out.splitlines()]

    assert values("one", "7") == values("two", "7") != values("three", "8")


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--rate", "fast"), "is not a rate"),
        ((), "--rate"),
        (("--rate", "1/s", "--profile", "x.csv"), "--rate"),
        (("--profile", "nowhere.csv"), "cannot be read"),
        (("--rate", "1/s", "--for", "soon"), "is not a duration"),
        (("--rate", "1/s"), "is declared by no pipeline here"),
        (("--rate", "1/s", "--words", "3", "--template", "x"), "cannot stand beside"),
        (("--rate", "1/s", "--file", "nowhere.txt"), "cannot be read"),
    ],
)
def test_a_load_that_cannot_be_is_refused(command: Any, words: tuple[str, ...], text: str) -> None:
    command("topic", "create", "words")
    answer = command("load", "words", *words)
    assert answer.code in (2, 3) and text in answer.err and answer.err.count("\n") == 1


def test_a_profile_of_rates_is_read_from_a_file(command: Any, services: Any) -> None:
    (services.folder / "rates.csv").write_text("seconds,rate\n0,1000/s\n50ms,0\n")
    command("topic", "create", "words")
    answer = command("load", "words", "--profile", "rates.csv", "--words", "2")
    assert answer.code == 0 and "appended 50 records" in answer.out
