"""Columns as people write them (`"word string, n long"`), read without Spark, so that a pipeline file loads
anywhere.

It splits names from types and knows Spark's type words well enough to name a misspelt one; Spark has the last
word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.authoring.reading import nearest
from penstock.model.errors import SpecError

_NUMBERS = (
    "byte",
    "tinyint",
    "short",
    "smallint",
    "int",
    "integer",
    "long",
    "bigint",
    "float",
    "real",
    "double",
)
_TIMES = ("date", "time", "timestamp", "timestamp_ntz", "timestamp_ltz")
_OTHERS = ("boolean", "string", "binary", "decimal", "dec", "numeric", "variant", "void")
_SIMPLE = frozenset((*_NUMBERS, *_TIMES, *_OTHERS))
_SIZED = re.compile(r"^(decimal|dec|numeric|char|character|varchar|time|string|geometry|geography)\s*\(.*\)$")
_NESTED = re.compile(r"^(array|map|struct)\s*<(.*)>$", re.DOTALL)
_TAIL = re.compile(
    r"\s+(not\s+null|comment\s+(?:'[^']*'|\"[^\"]*\")|default\s+.*|collate\s+\w+)\s*$", re.IGNORECASE
)
_NAME = re.compile(r"^(`(?:[^`]|``)+`|[^\s:<>(),`]+)\s*:?\s*(.*)$", re.DOTALL)
_OPEN, _CLOSE = "<(", ">)"


@dataclass(frozen=True, slots=True)
class Column:
    """A column's name, and its type in lower case, without constraints."""

    name: str
    type: str


def parse_columns(field: str, text: str) -> tuple[Column, ...]:
    """The columns of a schema string; a `SpecError` names the part that cannot be read."""
    columns = tuple(_parse_column(field, text, part) for part in _split(text))
    if not columns:
        raise SpecError(field, text, "has no columns", 'write names and types, like "word string, n long"')
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise SpecError(
                field, text, f"names the column {column.name!r} twice", "give each column its own name"
            )
        seen.add(column.name.lower())
    return columns


def _parse_column(field: str, text: str, part: str) -> Column:
    match = _NAME.match(part.strip())
    if match is None or not match.group(2):
        raise SpecError(
            field,
            text,
            f"has {part.strip()!r}, which is not a name and a type",
            'write names and types, like "word string, n long"',
        )
    kind = match.group(2).strip()
    while (tail := _TAIL.search(kind)) is not None:
        kind = kind[: tail.start()].strip()
    _check_type(field, text, kind.lower())
    return Column(match.group(1).strip("`").replace("``", "`"), kind.lower())


def _check_type(field: str, text: str, kind: str) -> None:
    if kind in _SIMPLE or kind.startswith("interval ") or _SIZED.match(kind):
        return
    nested = _NESTED.match(kind)
    if nested is None:
        known = [*_SIMPLE, "array<...>", "map<...>", "struct<...>"]
        raise SpecError(
            field, text, f"has the type {kind!r}, which Spark does not know", nearest(kind, known)
        )
    parts = _split(nested.group(2))
    wanted = {"array": 1, "map": 2}.get(nested.group(1))
    if wanted is not None and len(parts) != wanted:
        raise SpecError(field, text, f"has {kind!r} with {len(parts)} types inside", f"give it {wanted}")
    for part in parts:
        if wanted is None:
            _parse_column(field, text, part)
        else:
            _check_type(field, text, part.strip())


def _split(text: str) -> list[str]:
    """Parts between top-level commas: not those inside brackets, backticks or quotes."""
    parts: list[str] = []
    depth, quote, current = 0, "", ""
    for char in text:
        if quote:
            quote = "" if char == quote else quote
        elif char in "`'\"":
            quote = char
        elif char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(current)
            current = ""
            continue
        current += char
    parts.append(current)
    return [part for part in parts if part.strip()]
