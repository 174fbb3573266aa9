"""Results as a table for people or as JSON for programs; both come from the same rows."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, cast

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.interfaces.cli.tools import OutputKind

_PIPE_WIDTH = 240
"""Characters of a line when no terminal is there: tables in files are cut nowhere."""


def console() -> Console:
    """Where tables go: made anew each time, so that it follows what stdout is now."""
    plain = Console(highlight=False, soft_wrap=False)
    return plain if plain.is_terminal else Console(highlight=False, width=_PIPE_WIDTH, color_system=None)


def show(
    rows: Sequence[Mapping[str, Any]], output: OutputKind, columns: Sequence[str] = (), empty: str = ""
) -> None:
    """Rows as asked. JSON has every value as it is; a table has the columns named, as text."""
    if output is OutputKind.JSON:
        show_json(list(rows))
    elif not rows:
        typer.echo(empty or "Nothing there.")
    else:
        console().print(make_table(rows, columns or list(rows[0])))


def make_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """Numbers to the right, text to the left, one line of heads."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        numeric = all(_is_number(row.get(name)) for row in rows)
        table.add_column(
            name.upper().replace("_", " "), justify="right" if numeric else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(_text(row.get(name))) for name in columns))
    return table


def show_json(value: object) -> None:
    """Strict JSON: a number that is not known is null."""
    typer.echo(json.dumps(plain_value(value), indent=2, ensure_ascii=False, allow_nan=False))


def plain_value(value: Any) -> Any:
    """Dataclasses, tuples and numbers that JSON lacks, as what it has."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain_value(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {str(name): plain_value(each) for name, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, Sequence) and not isinstance(value, str | bytes):
        return [plain_value(each) for each in cast("Sequence[Any]", value)]
    if isinstance(value, bool | str) or value is None:
        return value
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return str(value)


def _is_number(value: Any) -> bool:
    if isinstance(value, str):
        return value == "-" or value[:1].isdigit() or value[:1] == "∞"
    return not isinstance(value, bool) and isinstance(value, int | float)


def _text(value: Any) -> str:
    """A cell."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return _number(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _number(value: float) -> str:
    """Four digits, or all before the point where there are more."""
    if not math.isfinite(value):
        return "-" if math.isnan(value) else "∞" if value > 0 else "-∞"
    return f"{value:,.4g}" if abs(value) < 9_999.5 else f"{value:,.0f}"
