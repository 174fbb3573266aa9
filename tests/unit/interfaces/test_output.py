"""Tables for people and JSON for programs from the same rows; brackets are text, unknown numbers are null."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from penstock.interfaces.cli.output import make_table, plain_value, show, show_json
from penstock.interfaces.cli.tools import OutputKind, parse_pairs
from penstock.model.errors import SpecError


def drawn(*rows: dict[str, object]) -> list[str]:
    console = Console(width=400, color_system=None)
    with console.capture() as capture:
        console.print(make_table(rows, list(rows[0])))
    return [line.rstrip() for line in capture.get().splitlines()]


@pytest.mark.parametrize(
    "text",
    ["[red]x[/red]", "[1, 2]", "a[b]c", "[/nothing]", "\\[x]", "\\", "[", "]", "['p-0', 'p-1']", "[or more]"],
)
def test_brackets_are_text(text: str) -> None:
    assert drawn({"a": text})[1] == text


@settings(max_examples=100)
@given(st.text(alphabet="ab[]\\/ #'1,", min_size=1, max_size=12).filter(lambda s: s == s.strip()))
def test_any_text_is_shown_as_it_is(text: str) -> None:
    assert drawn({"a": f"<{text}>"})[1] == f"<{text}>"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "yes"),
        (False, "no"),
        (1234567, "1,234,567"),
        (0.5, "0.5"),
        (1234.5, "1,234"),
        (9999.9, "10,000"),
        (12345.6, "12,346"),
        (math.nan, "-"),
        (math.inf, "∞"),
        (0.0, "0"),
        (-2.5, "-2.5"),
        ("x", "x"),
    ],
)
def test_cells(value: object, text: str) -> None:
    assert drawn({"a": value})[1] == text


def test_numbers_stand_right_and_words_left() -> None:
    head, first, second = drawn({"job": "a", "n": 5}, {"job": "count", "n": 1_000})
    assert head.split() == ["JOB", "N"]
    assert first == "a          5" and second == "count  1,000"


def test_heads_are_words() -> None:
    assert drawn({"true_rate": 1})[0] == "TRUE RATE"


@dataclass
class Held:
    name: str
    at: float
    parts: tuple[int, ...]


def test_json_has_every_value_as_it_is_and_null_for_what_is_not_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    show_json({"held": Held("é", math.nan, (1, 2)), 3: math.inf, "raw": b"\xff", "none": None, "yes": True})
    told = json.loads(capsys.readouterr().out)
    assert told == {
        "held": {"name": "é", "at": None, "parts": [1, 2]},
        "3": None,
        "raw": "\ufffd",
        "none": None,
        "yes": True,
    }


def test_what_json_lacks_is_its_text() -> None:
    assert plain_value({"p": OutputKind.JSON, "c": 1 + 2j}) == {"p": "json", "c": "(1+2j)"}


def test_no_rows_are_said_or_an_empty_list(capsys: pytest.CaptureFixture[str]) -> None:
    show([], OutputKind.TABLE, empty="Nobody.")
    show([], OutputKind.TABLE)
    show([], OutputKind.JSON)
    assert capsys.readouterr().out == "Nobody.\nNothing there.\n[]\n"


def test_a_table_has_the_columns_named_and_json_has_all(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [{"a": 1, "b": 2}]
    show(rows, OutputKind.TABLE, ["b"])
    assert "A" not in capsys.readouterr().out
    show(rows, OutputKind.JSON, ["b"])
    assert json.loads(capsys.readouterr().out) == rows


def test_pairs() -> None:
    assert parse_pairs("--set", ["a=1", " b = x=y "], "a.b=1") == {"a": "1", "b": "x=y"}
    for wrong in ("a", "=1", " =1"):
        with pytest.raises(SpecError, match=r"is not name=value; write it like --set a\.b=1"):
            parse_pairs("--set", [wrong], "a.b=1")
    with pytest.raises(SpecError, match="'a=2' gives a a second time"):
        parse_pairs("--set", ["a=1", "a=2"], "a.b=1")
