"""Columns as people write them: names, types, nesting, and misspelt ones by name."""

from __future__ import annotations

import pytest

from penstock.authoring.schema import Column, parse_columns
from penstock.model.errors import SpecError


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("n long", [("n", "long")]),
        ("word string, n long", [("word", "string"), ("n", "long")]),
        ("a: INT , b\tDouble,", [("a", "int"), ("b", "double")]),
        ("price decimal(10, 2), at timestamp_ntz", [("price", "decimal(10, 2)"), ("at", "timestamp_ntz")]),
        (
            "tags array<string>, m map<string, array<int>>",
            [("tags", "array<string>"), ("m", "map<string, array<int>>")],
        ),
        ("s struct<a: int, b: struct<c: string>>", [("s", "struct<a: int, b: struct<c: string>>")]),
        ("`odd, name` int", [("odd, name", "int")]),
        ("`back``tick` int", [("back`tick", "int")]),
        ("n long NOT NULL COMMENT 'a, b', m int", [("n", "long"), ("m", "int")]),
        ("d interval day to second", [("d", "interval day to second")]),
    ],
)
def test_columns(text: str, columns: list[tuple[str, str]]) -> None:
    assert parse_columns("schema", text) == tuple(Column(*c) for c in columns)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "has no columns"),
        (" , ", "has no columns"),
        ("n", "not a name and a type"),
        ("n lon", "'lon', which Spark does not know"),
        ("a int, A long", "twice"),
        ("m map<string>", "with 1 types inside"),
        ("l array<string, int>", "with 2 types inside"),
        ("l array<strin>", "'strin'"),
        ("s struct<a>", "not a name and a type"),
        ("s struct<a: lon>", "'lon'"),
        ("<int", "not a name and a type"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_part(text: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        parse_columns("schema", text)
    error = caught.value
    assert (error.field, error.value) == ("schema", text) and words in error.problem and error.remedy


def test_the_nearest_type_is_offered() -> None:
    with pytest.raises(SpecError, match="nearest is 'string'"):
        parse_columns("schema", "w strng")
