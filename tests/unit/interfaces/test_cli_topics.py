"""`penstock topic` and `penstock load` over a real log on a temporary folder: tables, JSON, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from penstock.adapters.topics.config import RETENTION_BYTES, RETENTION_MS
from penstock.app.parts import ProjectLock
from penstock.model.ids import TopicPartition
from penstock.model.records import Record
from penstock.ports.topics import LOG_CONFIG

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
    assert refused.code == 2 and "like --config retention.ms=60000" in refused.err


def test_settings_that_the_log_would_never_act_on_are_refused(command: Any) -> None:
    near = command("topic", "create", "words", "--config", "retention.m=1")
    far = command("topic", "create", "words", "--config", "foo=1")
    assert (near.code, far.code) == (2, 2) and "the nearest is 'retention.ms'" in near.err
    assert "known are retention.bytes, retention.ms" in far.err
    assert set(LOG_CONFIG) == {RETENTION_BYTES, RETENTION_MS}
    assert command("topic", "list", "-o", "json").json() == []


@pytest.mark.parametrize(
    "words",
    [
        ("topic", "list"),
        ("topic", "lag"),
        ("topic", "describe", "x"),
        ("topic", "tail", "x"),
        ("topic", "produce", "x", "1"),
        ("topic", "delete", "x", "--yes"),
        ("load", "x", "--rate", "1/s", "--words", "3"),
    ],
)
def test_looking_makes_no_log(command: Any, services: Any, words: tuple[str, ...]) -> None:
    command(*words)
    assert not (services.folder / "log").exists()


def test_a_dead_letter_is_shown_with_its_reason(command: Any, services: Any) -> None:
    topics = services.topics(services.folder, None)
    topics.create("words.dead", 1)
    topics.append("words.dead", [Record(None, b"{", 1, (("penstock.reason", b"value is no object"),))])
    topics.close()
    assert command("topic", "tail", "words.dead").out == "0@0\t-\t{\tpenstock.reason: value is no object\n"


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


def test_records_of_the_last_while(command: Any) -> None:
    fill(command, "to", "be")
    assert command("topic", "tail", "words", "-n", "0", "--since", "1h").out == "0@0\t-\tto\n0@1\t-\tbe\n"
    assert "is not a duration" in command("topic", "tail", "words", "--since", "soon").err


def test_what_is_kept_is_looked_at(command: Any, services: Any) -> None:
    assert command("topic", "verify").code == 3
    fill(command, "to", "be")
    assert "All that the index promises is there." in command("topic", "verify").out
    (segment,) = (services.folder / "log").rglob("*.arrow")
    held = bytearray(segment.read_bytes())
    held[len(held) // 2] ^= 1
    segment.write_bytes(held)
    answer = command("topic", "verify", "words", "-o", "json")
    assert answer.code == 5 and [row["kind"] for row in answer.json()] == ["corrupt"]


def test_retention_can_be_told_to_pass_readers(command: Any, services: Any) -> None:
    command("topic", "create", "words", "--partitions", "1", "--config", "retention.ms=1")
    topics = services.topics(services.folder, None)
    topics.append("words", [Record(None, b"old", 1), Record(None, b"older", 1)])
    topics.commit_progress("slow", {TopicPartition("words", 0): 0})
    topics.close()
    assert "dropped 0 records" in command("topic", "retain", "words").out
    assert "Nothing was dropped" in command("topic", "retain", "words", "--past-readers").err
    assert "dropped 2 records" in command("topic", "retain", "words", "--past-readers", "--yes").out


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
        (("produce", "words"), "", 3, "stdin was empty"),
        (("lag", "nowhere"), None, 3, "nowhere"),
        (("create", "x", "--partitions", "many"), None, 2, "--partitions needs a valid integer; see"),
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
    unanswered = command("topic", "delete", "words", given="")
    assert unanswered.code == 3 and "add --yes" in unanswered.err and unanswered.err.count("\n") <= 2
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
        ((), "topic = 'words' is given no rate; add one, like --rate 100/s"),
        (("--rate", "1/s", "--rates", "x.csv"), "--rates = 'x.csv' stands beside --rate 1/s"),
        (("--rates", "nowhere.csv"), "cannot be read"),
        (("--rate", "0", "--words", "3"), "brings no record"),
        (("--rate", "1/s", "--for", "0s", "--words", "3"), "leaves no time"),
        (("--rate", "1/s", "--linear", "--words", "3"), "has no rates to go between"),
        (("--rate", "1/s", "--file", "a", "--words", "3"), "--words = '3' stands beside --file"),
        (("--rate", "1/s", "--template", '{"n": {integer:1:9}}'), "use {int:1:9} {float:0:1} {word}"),
        (("--rate", "1/s", "--for", "soon"), "is not a duration"),
        (("--rate", "1/s"), "is declared by no pipeline here"),
        (("--rate", "1/s", "--words", "3", "--template", "x"), "stands beside --template"),
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
    answer = command("load", "words", "--rates", "rates.csv", "--words", "2")
    assert answer.code == 0 and "appended 50 records" in answer.out


@pytest.mark.parametrize(
    "words",
    [
        ("load", "lines", "--rate", "100/s", "--for", "50ms", "--template", '{"lin": "a"}'),
        ("load", "lines", "--rate", "100/s", "--for", "50ms", "--file", "values.txt"),
        ("topic", "produce", "lines", '{"lin": "a"}'),
    ],
)
def test_a_field_that_is_no_column_is_refused_unless_told(
    command: Any, services: Any, words: tuple[str, ...]
) -> None:
    (services.folder / "pipeline.py").write_text(PIPELINE)
    (services.folder / "values.txt").write_text('{"line": "a"}\n{"lin": "a"}\n')
    command("topic", "create", "lines")
    refused = command(*words)
    assert refused.code == 2 and "field = 'lin' is no column of topic 'lines' (line)" in refused.err
    assert "the nearest is 'line'; --unchecked" in refused.err
    assert command("topic", "tail", "lines").out == ""
    assert command(*words, "--unchecked").code == 0 and command("topic", "tail", "lines").out


def test_a_value_that_is_no_object_is_refused_unless_told(command: Any, services: Any) -> None:
    (services.folder / "pipeline.py").write_text(PIPELINE)
    command("topic", "create", "lines")
    refused = command("topic", "produce", "lines", "plain words")
    assert refused.code == 2 and "is no JSON object with the columns of topic 'lines'" in refused.err
    assert command("topic", "produce", "lines", "plain words", "--unchecked").code == 0
