"""Axes: round steps for values, clock steps for time, and fewer points where a line has more than a screen can show.

Pure numbers; it knows neither SVG nor jobs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Point = tuple[float, float]
_CLOCK_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)


def value_ticks(top: float, most: int = 4) -> list[float]:
    """Round values from 0 to at least `top`, at most `most` steps; [0, 1] for nothing."""
    raw = top / most  # 0 for the smallest number there is
    if not math.isfinite(top) or raw <= 0:
        return [0.0, 1.0]
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * (1 - 1e-9))
    return [i * step for i in range(math.ceil(top / step - 1e-9) + 1)]


def time_ticks(end_seconds: float, most: int = 6) -> list[float]:
    """Moments from 0 to the end, in steps that a clock has."""
    if not math.isfinite(end_seconds) or end_seconds <= 0:
        return [0.0]
    steps = [s for s in _CLOCK_STEPS if end_seconds / s <= most]
    step = steps[0] if steps else math.ceil(end_seconds / most / 86_400) * 86_400
    return [float(i * step) for i in range(int(end_seconds // step) + 1)]


def format_moment(seconds: float) -> str:
    """`1:05`, `2:00:10`; a dash where it is not known."""
    if not math.isfinite(seconds):
        return "-"
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}" if minutes >= 60 else f"{minutes}:{rest:02}"


def format_tick(value: float) -> str:
    """`0`, `2.5`, `150`, `12k`, `1.5M`."""
    for limit, suffix in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= limit:
            unit = 1e3 if suffix == "k" else limit
            return f"{value / unit:.4g}{suffix}"
    return f"{value:.4g}"


def thin(points: Sequence[Point], most: int = 400) -> list[Point]:
    """At most about four points for each of `most` spans: the first, lowest, highest and last, so that no peak is lost.

    A point that is not a number breaks the line and is kept once in a row.
    """
    if len(points) <= most * 2:
        return list(points)
    begin, end = points[0][0], points[-1][0]
    width = (end - begin) / most or 1.0
    spans: dict[int, list[int]] = {}
    for i, (x, _) in enumerate(points):
        spans.setdefault(int((x - begin) / width), []).append(i)
    kept: set[int] = set()
    for indices in spans.values():
        numbers = [i for i in indices if not math.isnan(points[i][1])]
        kept.update({indices[0], indices[-1]})
        if numbers:
            kept.update({min(numbers, key=lambda i: points[i][1]), max(numbers, key=lambda i: points[i][1])})
    return [points[i] for i in sorted(kept)]
