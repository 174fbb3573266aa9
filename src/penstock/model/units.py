"""Durations, rates and sizes as people write them, to plain numbers with the unit in the caller's name.

Every parser names the field it was given, so that the error can be shown as it is.
"""

from __future__ import annotations

import math
import re

from penstock.model.errors import SpecError

_DURATION = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE = {
    "b": 1,
    "k": 1 << 10,
    "kb": 1 << 10,
    "m": 1 << 20,
    "mb": 1 << 20,
    "g": 1 << 30,
    "gb": 1 << 30,
    "t": 1 << 40,
    "tb": 1 << 40,
}
_NUMBER = re.compile(r"^\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*$")


def parse_seconds(field: str, value: object) -> float:
    """`"30s"`, `"2m"`, `"500ms"`, or a number of seconds."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        seconds = float(value)
    else:
        match = _NUMBER.match(str(value))
        unit = (match.group(2).lower() or "s") if match else ""
        if match is None or unit not in _DURATION:
            raise SpecError(
                field, value, "is not a duration", 'write a number with a unit, like "30s", "2m" or "500ms"'
            )
        seconds = float(match.group(1)) * _DURATION[unit]
    if not math.isfinite(seconds) or seconds < 0:
        raise SpecError(field, value, "is not a duration", "give a finite number of seconds, 0 or more")
    return seconds


def parse_rate_per_second(field: str, value: object) -> float:
    """`"100/s"`, `"6k/m"`, or a number of records per second."""
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < math.inf:
        return float(value)
    text = str(value).strip()
    head, _, per = text.partition("/")
    match = re.match(r"^([0-9]+(?:\.[0-9]+)?)\s*([kM]?)$", head.strip())
    per_seconds = _DURATION.get(per.strip() or "s")
    if match is None or per_seconds is None:
        raise SpecError(
            field, value, "is not a rate", 'write records per unit of time, like "100/s" or "6k/m"'
        )
    return float(match.group(1)) * {"": 1.0, "k": 1e3, "M": 1e6}[match.group(2)] / per_seconds


def parse_bytes(field: str, value: object) -> int:
    """`"64MB"`, `"1g"`, or a number of bytes (powers of 1,024)."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    match = _NUMBER.match(str(value))
    unit = (match.group(2).lower() or "b") if match else ""
    if match is None or unit not in _SIZE:
        raise SpecError(field, value, "is not a size", 'write a number with a unit, like "64MB" or "1g"')
    return int(float(match.group(1)) * _SIZE[unit])


def format_seconds(seconds: float) -> str:
    """A duration for people: `850 ms`, `12.3 s`, `4 min 10 s`, `3 h 2 min`."""
    if not math.isfinite(seconds):
        return "∞" if seconds > 0 else "-"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 120:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 120:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def format_rate(per_second: float) -> str:
    """A rate for people: `0.5/s`, `155/s`, `3.1k/s`, `2.4M/s`."""
    if not math.isfinite(per_second):
        return "-"
    for limit, divisor, suffix in ((1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if abs(per_second) >= limit:
            return f"{_three_digits(per_second / divisor)}{suffix}/s"
    return f"{per_second:.3g}/s" if abs(per_second) < 100 else f"{per_second:,.0f}/s"


def format_bytes(size: float) -> str:
    """A size for people: `512 B`, `1.2 MB` (powers of 1,024)."""
    for limit, suffix in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= limit:
            return f"{_three_digits(size / limit)} {suffix}"
    return f"{size:.0f} B"


def _three_digits(number: float) -> str:
    """Three digits, or all before the point where there are more: never a power of ten."""
    return f"{number:.3g}" if abs(number) < 999.5 else f"{number:,.0f}"
