"""What every command has at hand, and the options that many commands share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from penstock.model.errors import SpecError
from penstock.ports.clock import Clock
from penstock.ports.services import Services


class OutputKind(StrEnum):
    TABLE = "table"
    JSON = "json"


@dataclass(frozen=True)
class Tools:
    """Kept in the context of every command."""

    services: Services
    clock: Clock

    def pause(self, seconds: float) -> None:
        """Wait without being deaf to signals."""
        threading.Event().wait(max(0.0, seconds))


def tools_of(ctx: typer.Context) -> Tools:
    """What the root command put there."""
    held = ctx.find_object(Tools)
    assert held is not None
    return held


def parse_pairs(option: str, pairs: Sequence[str], example: str) -> dict[str, str]:
    """`name=value` texts as a map; each name once."""
    found: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name.strip():
            raise SpecError(option, pair, "is not name=value", f"write it like {option} {example}")
        if name.strip() in found:
            raise SpecError(option, pair, f"gives {name.strip()} a second time", "keep one of them")
        found[name.strip()] = value.strip()
    return found


def tell(text: str) -> None:
    """Progress: on stderr, so that stdout stays for results."""
    typer.echo(text, err=True)


Project = Annotated[Path, typer.Option("--project", "-p", help="The project's folder.", show_default="here")]
Profile = Annotated[str | None, typer.Option("--profile", help="Profile of penstock.toml to use.")]
Output = Annotated[OutputKind, typer.Option("--output", "-o", help="A table for people, json for programs.")]
PIPELINE = typer.Argument(
    help="A pipeline file, or a folder with pipeline.py; the project's when none is given.",
    show_default=False,
)
HERE = Path()
