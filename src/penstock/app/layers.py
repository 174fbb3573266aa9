"""Where settings come from, each value with its place: the project file, the environment, the command line.

It knows no setting by name: what a value means, and whether it may be, is for settings.py to say.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from penstock.authoring.registry import format_place
from penstock.model.errors import SpecError

FILE = "penstock.toml"
_PREFIX = "PENSTOCK_"
_TABLE = re.compile(r"^\s*\[\[?\s*(.+?)\s*\]\]?\s*(#.*)?$")
_KEY = re.compile(r"""^\s*((?:"[^"]*"|'[^']*'|[\w-]+)(?:\s*\.\s*(?:"[^"]*"|'[^']*'|[\w-]+))*)\s*=""")
_PART = re.compile(r""""([^"]*)"|'([^']*)'|([\w-]+)""")


@dataclass(frozen=True, slots=True)
class Given:
    """One value that somebody gave, and where."""

    path: tuple[str, ...]
    value: object
    place: str

    @property
    def name(self) -> str:
        return ".".join(self.path)


def read_file(file: Path) -> list[Given]:
    """Every value of a TOML file, in its order, with its line."""
    try:
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SpecError(FILE, str(file), f"is not UTF-8 text ({error.reason})", "save it as UTF-8") from None
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        problem = re.sub(r"\s*\(at .*\)$", "", str(error))
        place = format_place(str(file), int(line.group(1)) if line else text.count("\n") + 1)
        raise SpecError(FILE, file.name, f"is not TOML: {problem}", "mend this line", place) from None
    lines = _lines(text)

    def place_of(path: tuple[str, ...]) -> str:
        known = next((lines[path[:n]] for n in range(len(path), 0, -1) if path[:n] in lines), 1)
        return format_place(str(file), known)

    return [Given(path, value, place_of(path)) for path, value in _leaves(tables)]


def read_environment(env: Mapping[str, str], sections: Sequence[str]) -> list[Given]:
    """`PENSTOCK_<SECTION>_<KEY>`, deeper keys after a double underscore; other names are not ours to judge."""
    found: list[Given] = []
    for name in sorted(env):
        match = re.match(rf"^{_PREFIX}([A-Z]+)_+(.+)$", name)
        if match is None or match.group(1).lower() not in sections:
            continue
        path = (match.group(1).lower(), *match.group(2).lower().split("__"))
        found.append(Given(path, env[name], f"environment variable {name}"))
    return found


def unread_variables(env: Mapping[str, str], sections: Sequence[str]) -> list[str]:
    """Variables that look like settings and are none."""
    read = {given.place.removeprefix("environment variable ") for given in read_environment(env, sections)}
    return [n for n in sorted(env) if n.startswith(_PREFIX) and n not in read and n != f"{_PREFIX}PROFILE"]


def read_overrides(overrides: Mapping[str, str]) -> list[Given]:
    """Values from the command line by their dotted names."""
    return [Given(tuple(name.split(".")), value, f"--set {name}") for name, value in overrides.items()]


def _leaves(
    table: Mapping[str, object], path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], object]]:
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(cast("Mapping[str, object]", value), (*path, key))
        else:
            yield (*path, key), value


def _lines(text: str) -> dict[tuple[str, ...], int]:
    """The line of each table and key, as far as a look at single lines tells."""
    lines: dict[tuple[str, ...], int] = {}
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if found := _TABLE.match(line):
            table = _parts(found.group(1))
            lines.setdefault(table, number)
        elif found := _KEY.match(line):
            lines.setdefault((*table, *_parts(found.group(1))), number)
    return lines


def _parts(dotted: str) -> tuple[str, ...]:
    return tuple(a or b or c for a, b, c in _PART.findall(dotted))
