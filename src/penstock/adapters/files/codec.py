"""Frozen dataclasses to strict JSON and back, by their declared types.

Rules: every number survives, also NaN and the infinities (as words, since JSON has none); what equals its default is
left out; a field that a newer or older version wrote and this one does not know is passed over; a union of dataclasses
carries the name of its member. It knows no particular model.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Literal, NamedTuple

_TAG = "_"


class _Codec(NamedTuple):
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def encode(value: object) -> dict[str, Any]:
    """A dataclass as a JSON object."""
    return _codec(type(value)).encode(value)


def decode(kind: type[Any], given: Mapping[str, Any]) -> Any:
    """The dataclass `kind` of a JSON object; ValueError, TypeError or KeyError when it is none."""
    return _codec(kind).decode(given)


@cache
def _codec(kind: Any) -> _Codec:
    if dataclasses.is_dataclass(kind):
        return _dataclass(typing.cast("type[Any]", kind))
    if kind is float:
        return _Codec(_number, _float)
    if kind is int:
        return _Codec(_number, _int)
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if kind in (str, bool) or origin is Literal:
        return _Codec(_same, _same)
    if origin in (typing.Union, types.UnionType):
        return _union(arguments)
    if origin is tuple and (len(arguments) != 2 or arguments[1] is not Ellipsis):
        return _fixed(arguments)
    if origin in (tuple, Sequence):
        return _several(arguments[0])
    if origin is Mapping:
        return _mapping(arguments[0], arguments[1])
    raise TypeError(f"no way to write {kind!r} as JSON")


def _dataclass(kind: type[Any]) -> _Codec:
    hints = typing.get_type_hints(kind)
    fields = {f.name: f for f in dataclasses.fields(kind)}

    def write(value: Any) -> dict[str, Any]:
        held = {name: getattr(value, name) for name in fields}
        return {
            name: _codec(hints[name]).encode(held[name])
            for name, field in fields.items()
            if not _is_default(field, held[name])
        }

    def read(given: Any) -> Any:
        if not isinstance(given, Mapping):
            raise TypeError(f"{kind.__name__} is not an object: {given!r}")
        known = typing.cast("Mapping[str, Any]", given)
        return kind(**{name: _codec(hints[name]).decode(known[name]) for name in fields if name in known})

    return _Codec(write, read)


def _is_default(field: dataclasses.Field[Any], value: object) -> bool:
    if field.default is not dataclasses.MISSING:
        return type(value) is type(field.default) and value == field.default
    if field.default_factory is not dataclasses.MISSING:
        return value == field.default_factory()
    return False


def _union(arguments: tuple[Any, ...]) -> _Codec:
    members = [member for member in arguments if member is not types.NoneType]
    named: dict[str, Any] = {member.__name__: member for member in members}

    def write(value: Any) -> Any:
        if value is None:
            return None
        if len(members) == 1:
            return _codec(members[0]).encode(value)
        name = type(value).__name__
        return {_TAG: name, **_codec(named[name]).encode(value)}

    def read(given: Any) -> Any:
        if given is None:
            return None
        return _codec(members[0] if len(members) == 1 else named[given[_TAG]]).decode(given)

    return _Codec(write, read)


def _several(inner: Any) -> _Codec:
    def write(values: Any) -> list[Any]:
        return [_codec(inner).encode(value) for value in values]

    def read(given: Any) -> tuple[Any, ...]:
        return tuple(_codec(inner).decode(value) for value in _list(given))

    return _Codec(write, read)


def _fixed(arguments: tuple[Any, ...]) -> _Codec:
    def write(values: Any) -> list[Any]:
        return [_codec(kind).encode(value) for kind, value in zip(arguments, values, strict=True)]

    def read(given: Any) -> tuple[Any, ...]:
        return tuple(_codec(kind).decode(value) for kind, value in zip(arguments, _list(given), strict=True))

    return _Codec(write, read)


def _mapping(key: Any, inner: Any) -> _Codec:
    """An object where keys are text, else pairs."""
    pairs = _several(tuple[key, inner])

    def write(values: Any) -> Any:
        if key is not str:
            return pairs.encode(values.items())
        return {str(name): _codec(inner).encode(value) for name, value in values.items()}

    def read(given: Any) -> Any:
        if key is not str:
            return dict(pairs.decode(given))
        return {name: _codec(inner).decode(value) for name, value in given.items()}

    return _Codec(write, read)


def _list(given: Any) -> list[Any]:
    if not isinstance(given, list):
        raise TypeError(f"not a list: {given!r}")
    return typing.cast("list[Any]", given)


def _same(value: Any) -> Any:
    return value


def _number(value: Any) -> Any:
    """A JSON number, or the word for one that JSON lacks; numpy's numbers become Python's."""
    plain = value.item() if hasattr(value, "item") else value
    return plain if math.isfinite(plain) else str(float(plain))


def _float(given: Any) -> float:
    return float(given)


def _int(given: Any) -> Any:
    """An int; a number that was not known stays NaN."""
    return given if isinstance(given, int) else float(given)
