"""A job's options in the names its owner writes, and how settings are laid under and over what the file
declares.

Order, later wins: built-in defaults, `[defaults]` of the settings, the declaration, `[jobs.NAME]` of the
settings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from penstock.authoring.reading import build, read_fields
from penstock.model.jobs import JobOptions, ScalingKnobs

ALIASES: Mapping[str, str] = {"trigger": "interval_seconds", "mode": "output_mode"}
"""Names that people know from Spark, for fields that are called otherwise."""


def read_job_options(given: Mapping[str, object], place: str = "", where: str = "") -> dict[str, object]:
    """Friendly options (`slo_lag="30s"`) to fields of `JobOptions`, not yet validated as a whole."""
    plain = {
        name: value.model_dump(exclude_unset=True) if isinstance(value, ScalingKnobs) else value
        for name, value in given.items()
    }
    return read_fields(JobOptions, plain, ALIASES, place, where)


def build_job_options(fields: Mapping[str, object], place: str = "", where: str = "") -> JobOptions:
    """Validated options; tasks and threads that nobody gave start inside their limits.

    `model_fields_set` keeps only what was given, so that settings can still be laid under it.
    """
    options = build(JobOptions, fields, ALIASES, place, where)
    values: dict[str, object] = {name: getattr(options, name) for name in JobOptions.model_fields}
    if "threads" not in fields:
        values["threads"] = max(options.threads, options.min_threads)
    if "tasks" not in fields:
        values["tasks"] = max(options.tasks, options.min_tasks)
    return JobOptions.model_construct(_fields_set=set(fields), **values)


def layer_job_options(
    declared: JobOptions,
    under: Mapping[str, object] | None = None,
    over: Mapping[str, object] | None = None,
    place: str = "",
) -> JobOptions:
    """Declared options with `under` where nothing was declared, and `over` on top (both as `read_job_options`
    gives).
    """
    merged: dict[str, object] = {}
    for layer in (under or {}, _given(declared), over or {}):
        knobs = {**_mapping(merged.get("scaling")), **_mapping(layer.get("scaling"))}
        merged.update(layer)
        if knobs:
            merged["scaling"] = knobs
    return build_job_options(merged, place)


def _given(options: JobOptions) -> dict[str, object]:
    """What was given of options, knobs included."""
    return options.model_dump(exclude_unset=True)


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}
