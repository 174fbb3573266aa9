"""Writes docs/settings.md from the models, so that the page never says what the program does not do.

`python -m penstock.app.settings_doc` prints it; `make docs` writes all generated pages, and a test compares them.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from penstock.app.project import toml_default
from penstock.app.sections import SECTIONS
from penstock.authoring.options import ALIASES
from penstock.authoring.reading import friendly_name
from penstock.model.jobs import JobOptions, ScalingKnobs
from penstock.model.topics import TopicSpec

_HEAD = """# Settings

Written by `make docs` from the models in the code; a test fails when this page and they differ.

Settings of a project stand in `penstock.toml` beside its pipeline; `penstock init` writes one with every setting as a
comment. Later wins: defaults, the profile's own, the file, the file's part for the profile (`[profiles.NAME.spark]`),
environment variables (`PENSTOCK_SPARK_SLOTS=8`; deeper keys after two underscores), `--set spark.slots=8`.

A duration is a number of seconds or text with a unit (`"500ms"`, `"30s"`, `"5m"`, `"7d"`); a size is a number of bytes
or text with a unit (`"64MB"`, `"1g"`; powers of 1,024).
"""
_JOB = """## Options of a job

Given to `@job(...)`, to all jobs under `[defaults]`, or to one under `[jobs.NAME]`. What the job's own declaration says
wins over `[defaults]`, and `[jobs.NAME]` wins over both.
"""
_KNOBS = """## Knobs of the scaling manager

Given as `scaling = { ... }` of a job, or singly, like `[jobs.count.scaling]` with `warm_up_windows = 1`.
"""
_TOPIC = """## Options of a topic

Given to `topic(name, schema, ...)` in the pipeline file.
"""
_ABOUT: Mapping[str, str] = {
    "project": "What the project is.",
    "bus": "Where topics live.",
    "store": "Where a run keeps what it must not lose.",
    "spark": "What the Spark application is made of.",
    "executors": "Executors on a Spark master, which come and go as jobs need slots; a local run has none.",
}
_TOPIC_NAMES = {"schema": "columns"}
_NOT_GIVEN = ("name", "place")


def settings_page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for section, model in SECTIONS.items():
        parts.append(f"## `[{section}]`\n\n{_ABOUT[section]}\n\n{_table(model, ALIASES)}")
    parts.append(f"{_JOB}\n{_table(JobOptions, ALIASES, skipped=('scaling',))}")
    parts.append(f"{_KNOBS}\n{_table(ScalingKnobs, {})}")
    parts.append(f"{_TOPIC}\n{_table(TopicSpec, _TOPIC_NAMES, skipped=_NOT_GIVEN)}")
    return "\n".join(parts)


def _table(model: type[BaseModel], aliases: Mapping[str, str], skipped: tuple[str, ...] = ()) -> str:
    rows = ["| name | kind | default | what it is, and why |", "|---|---|---|---|"]
    names = [friendly_name(field, aliases) for field in model.model_fields]
    for field, info in model.model_fields.items():
        if field not in skipped:
            name = friendly_name(field, aliases)
            # Where two differ by their unit alone, as retention does, the second keeps it in its name.
            name = field if names.count(name) > 1 and not field.endswith("_seconds") else name
            cells = (f"`{name}`", _kind(field, info), _default(field, info))
            rows.append(f"| {' | '.join(cells)} | {(info.description or '').replace('|', '/')} |")
    return "\n".join(rows) + "\n"


def _default(field: str, info: FieldInfo) -> str:
    if info.is_required():
        return "must be given"
    value = toml_default(field, info)
    return "none" if value == "(none)" else f"`{value}`"


def _kind(field: str, info: FieldInfo) -> str:
    """What one may write, in a word."""
    held = _without_none(info.annotation)
    if typing.get_origin(held) is Literal:
        return " or ".join(f'`"{choice}"`' for choice in typing.get_args(held))
    if field.endswith("_seconds"):
        return "duration"
    if "bytes" in field.split("_"):
        return "size"
    plain = {bool: "true or false", int: "whole number", float: "number", str: "text"}
    if isinstance(held, type) and held in plain:
        return plain[held]
    return "list" if typing.get_origin(held) is tuple else "table"


def _without_none(annotation: object) -> object:
    if typing.get_origin(annotation) in (types.UnionType, typing.Union):
        return next(arg for arg in typing.get_args(annotation) if arg is not type(None))
    return annotation


if __name__ == "__main__":
    print(settings_page(), end="")
