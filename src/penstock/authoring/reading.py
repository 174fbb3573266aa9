"""Reads what people write, names without units and values with them, into the model's typed fields.

`slo_lag="30s"` becomes `slo_lag_seconds=30.0`; `heap="1g"` becomes `heap_bytes`. One rule for decorators,
settings files and the command line: a field's friendly name is its name without its unit, the full name works
too, and an unknown name is refused with the nearest one. It knows no particular model.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar, cast

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from penstock.model.errors import SpecError
from penstock.model.units import parse_bytes, parse_seconds

_Model = TypeVar("_Model", bound=BaseModel)
_BOUNDS = re.compile(r"^(\w+) = (\S+) (.*); ([^;]*)$")


def friendly_name(field: str, aliases: Mapping[str, str] | None = None) -> str:
    """The name that people write for a field: its alias, or the field without its unit at the end."""
    for alias, target in (aliases or {}).items():
        if target == field:
            return alias
    return field.removesuffix("_seconds").removesuffix("_bytes")


def nearest(name: str, known: Iterable[str]) -> str:
    """A remedy for an unknown name: the nearest known one, or all of them."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if close:
        return f"the nearest is {close[0]!r}"
    return f"known are {', '.join(names)}" if names else "none are known"


def read_fields(
    model: type[BaseModel],
    given: Mapping[str, object],
    aliases: Mapping[str, str] | None = None,
    place: str = "",
    where: str = "",
) -> dict[str, object]:
    """Friendly names and values with units to the model's own fields; not yet validated. `where` prefixes
    names in errors.
    """
    accepted = {name: name for name in model.model_fields}
    accepted.update({friendly_name(name, aliases): name for name in model.model_fields})
    accepted.update({name.removesuffix("_seconds"): name for name in model.model_fields})
    accepted.update(aliases or {})
    fields: dict[str, object] = {}
    for name, value in given.items():
        field = accepted.get(name)
        if field is None:
            friendly = [friendly_name(known, aliases) for known in model.model_fields]
            raise SpecError(f"{where}{name}", value, "is not an option", nearest(name, friendly), place)
        if field in fields:
            raise SpecError(
                f"{where}{name}", value, "is given twice", f"it is the same as {field}; keep one", place
            )
        fields[field] = _read_value(model, field, value, place, f"{where}{name}")
    return fields


def build(
    model: type[_Model],
    fields: Mapping[str, object],
    aliases: Mapping[str, str] | None = None,
    place: str = "",
    where: str = "",
) -> _Model:
    """The validated model, or a `SpecError` in the names that people write."""
    try:
        return model.model_validate(dict(fields))
    except ValidationError as error:
        raise _spec_error(error.errors()[0], aliases, place, where) from None
    except SpecError as error:
        raise (error if error.place or not place else error.at(place)) from None


def _read_value(model: type[BaseModel], field: str, value: object, place: str, shown: str) -> object:
    """A value with its unit to the number that the field holds; None and nested models pass."""
    nested = model.model_fields[field].annotation
    if isinstance(nested, type) and issubclass(nested, BaseModel) and isinstance(value, Mapping):
        return read_fields(nested, cast("Mapping[str, object]", value), place=place, where=f"{shown}.")
    if value is None:
        return None
    try:
        if field.endswith("_seconds"):
            return parse_seconds(shown, value)
        if "bytes" in field.split("_"):
            return parse_bytes(shown, value)
    except SpecError as error:
        raise (error.at(place) if place else error) from None
    return value


def _spec_error(error: ErrorDetails, aliases: Mapping[str, str] | None, place: str, where: str) -> SpecError:
    message = error["msg"].removeprefix("Value error, ")
    bounds = _BOUNDS.match(message)
    if error["type"] == "value_error" and bounds:
        low, value, problem, remedy = bounds.groups()
        return SpecError(where + low, _number(value), problem, remedy, place)
    path = [friendly_name(str(part), aliases) for part in error["loc"]]
    field = where + ".".join(path) if path else where.rstrip(".") or "value"
    if error["type"] == "missing":
        return SpecError(field, None, "is missing", "give it a value", place)
    if error["type"] == "value_error":
        problem, _, remedy = message.partition("; ")
        return SpecError(field, error["input"], problem, remedy or "change it", place)
    wanted = re.sub(r",? unable to .*$", "", message.removeprefix("Input should be "))
    given = wanted if wanted.startswith(("'", "a ")) else f"a value {wanted}"
    return SpecError(field, error["input"], "is not allowed", f"give {given}", place)


def _number(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text
