"""Makes records for trials from a seed: sentences, lines of a file, a template, or whatever a topic's columns ask for.

The same seed gives the same records. It knows columns and codecs, not rates.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from itertools import count

import numpy as np

from penstock.authoring.schema import parse_columns
from penstock.model.errors import SpecError
from penstock.model.records import Record
from penstock.model.topics import TopicSpec

_TEXT = (
    "water gate river mill wheel stone stream valve flow head lake weir sluice canal flume race pond bank bridge "
    "lock field meadow rain cloud wind storm sun frost hill vale wood oak ash elm fern moss reed heron otter trout "
    "salmon miller baker smith mason farmer barge boat oar rope sail net iron copper brass timber plank beam nail "
    "hammer saw spade cart horse road path lane market bread grain flour oats barley salt honey lamp candle hearth "
    "morning noon evening night spring summer autumn winter slow swift deep shallow cold warm clear high low"
)
WORDS = tuple(_TEXT.split(" "))
_PLACE = re.compile(r"\{(int|float|words|word|seq|now_ms|now)(?::([^{}\"]*))?\}")
_LOOKS_LIKE_PLACE = re.compile(r"\{\s*([A-Za-z_]\w*)\s*(?::[^{}\"]*)?\}")
"""A JSON object begins otherwise: with a quote, or at once with its end."""
PLACES = "{int:1:9} {float:0:1} {word} {word:a,b} {words:5} {seq} {now} {now_ms}"
_WHOLE = ("byte", "tinyint", "short", "smallint", "int", "integer", "long", "bigint")
_REAL = ("float", "real", "double")

Piece = Callable[[int], Sequence[str]]
"""Makes the texts of one placeholder for so many records."""


class Sentences:
    """Texts of a number of words each."""

    def __init__(self, seed: int, words: int = 20) -> None:
        if words < 1:
            raise SpecError("words", words, "is too few", "give 1 or more")
        self._random, self._words = np.random.default_rng(seed), words

    def __call__(self, count: int) -> list[str]:
        picked: list[list[int]] = self._random.integers(0, len(WORDS), (count, self._words)).tolist()
        return [" ".join(WORDS[i] for i in row) for row in picked]


class Lines:
    """A file's lines, over and over."""

    def __init__(self, lines: Sequence[str], name: str) -> None:
        self._lines = [line for line in lines if line]
        if not self._lines:
            raise SpecError("file", name, "has no lines", "give a file with one record a line")
        self._next = 0

    def __call__(self, count: int) -> list[str]:
        taken = [self._lines[(self._next + i) % len(self._lines)] for i in range(count)]
        self._next = (self._next + count) % len(self._lines)
        return taken


class Template:
    """A text with places to fill: {int:1:9} {float:0:1} {word} {word:a,b} {words:5} {seq} {now} {now_ms}."""

    def __init__(self, text: str, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self._parts: list[str | Piece] = []
        self.now_ms = 0
        end = 0
        for found in _LOOKS_LIKE_PLACE.finditer(text):
            if not _PLACE.fullmatch(found.group()):
                raise SpecError("template", found.group(), "is no place that can be filled", f"use {PLACES}")
        for found in _PLACE.finditer(text):
            self._parts += [
                text[end : found.start()],
                self._piece(found.group(1), found.group(2), found.group()),
            ]
            end = found.end()
        self._parts.append(text[end:])

    def __call__(self, count: int) -> list[str]:
        columns = [[part] * count if isinstance(part, str) else part(count) for part in self._parts]
        return ["".join(row) for row in zip(*columns, strict=True)]

    def _piece(self, kind: str, given: str | None, shown: str) -> Piece:
        if kind in ("int", "float"):
            low, high = _bounds(given, shown, (0.0, 1000.0) if kind == "int" else (0.0, 1.0))
            if kind == "int":
                return lambda n: [str(i) for i in self._integers(n, int(low), int(high))]
            return lambda n: [f"{x:.6g}" for x in self._random.uniform(low, high, n).tolist()]
        if kind == "words":
            length = _whole(given or "5", shown)
            return Sentences(int(self._random.integers(1 << 31)), length)
        if kind == "word":
            choice = tuple(given.split(",")) if given else WORDS
            return lambda n: [choice[i] for i in self._integers(n, 0, len(choice) - 1)]
        if kind == "seq":
            numbers = count()
            return lambda n: [str(next(numbers)) for _ in range(n)]
        if kind == "now_ms":
            return lambda n: [str(self.now_ms)] * n
        return lambda n: (
            [datetime.fromtimestamp(self.now_ms / 1000, UTC).isoformat(timespec="milliseconds")] * n
        )

    def _integers(self, count: int, low: int, high: int) -> list[int]:
        return self._random.integers(low, high, count, endpoint=True).tolist()


class Maker:
    """`control.load.RecordMaker`: texts as records' values, with keys where the topic has one."""

    def __init__(self, texts: Piece, key_of: Callable[[str], bytes | None]) -> None:
        self._texts, self._key_of = texts, key_of

    def take(self, count: int, timestamp_ms: int) -> list[Record]:
        if isinstance(self._texts, Template):
            self._texts.now_ms = timestamp_ms
        return [Record(self._key_of(text), text.encode(), timestamp_ms) for text in self._texts(count)]


def make_texts(texts: Piece, topic: TopicSpec | None) -> Maker:
    """Texts that are records' values as they stand; the key is taken from the topic's key column, where it has one."""
    if topic is None or topic.key is None:
        return Maker(texts, lambda _: None)
    if topic.codec != "json":
        return Maker(texts, str.encode)
    column = topic.key
    return Maker(texts, lambda text: _json_key(text, column))


def make_sentences(seed: int, words: int, topic: TopicSpec | None) -> Maker:
    """Sentences, in the one string column that the topic has (or as plain text where nothing is known of it)."""
    if topic is None or topic.codec != "json":
        return make_texts(Sentences(seed, words), topic)
    columns = parse_columns("schema", topic.columns)
    if len(columns) != 1 or columns[0].type != "string":
        raise SpecError(
            "words", words, f"does not fit {topic.columns!r}", "use --template for several columns"
        )
    return make_texts(Template(f'{{"{columns[0].name}": "{{words:{words}}}"}}', seed), topic)


def make_by_columns(seed: int, topic: TopicSpec) -> Maker:
    """Something of its type for every column; SpecError for a type that takes a template."""
    if topic.codec != "json":
        return make_sentences(seed, 20, topic)
    columns = parse_columns("schema", topic.columns)
    if len(columns) == 1 and columns[0].type == "string":
        return make_sentences(seed, 20, topic)
    parts = [f'"{column.name}": {_place_for(column.type, topic)}' for column in columns]
    return make_texts(Template("{" + ", ".join(parts) + "}", seed), topic)


def _place_for(kind: str, topic: TopicSpec) -> str:
    if kind == "string":
        return '"{word}"'
    if kind in _WHOLE:
        return "{int:0:100}"
    if kind in _REAL or kind.startswith("decimal"):
        return "{float:0:1000}"
    if kind == "boolean":
        return "{word:true,false}"
    if kind.startswith("timestamp"):
        return '"{now}"'
    raise SpecError(
        "schema", topic.columns, f"has a column of type {kind}", "say what to write with --template"
    )


def _json_key(text: str, column: str) -> bytes | None:
    try:
        value = json.loads(text)[column]
    except (ValueError, KeyError, TypeError):
        return None
    return None if value is None else (value if isinstance(value, str) else json.dumps(value)).encode()


def _bounds(given: str | None, shown: str, default: tuple[float, float]) -> tuple[float, float]:
    if not given:
        return default
    try:
        low, high = (float(part) for part in given.split(":"))
    except ValueError:
        low, high = 1.0, 0.0
    if not low <= high:
        raise SpecError("template", shown, "has no range", "write {int:1:9} or {float:0:1}")
    return low, high


def _whole(text: str, shown: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise SpecError("template", shown, "has no number of words", "write {words:5}")
    return int(text)
