"""Draws one plot as SVG text: lines over time with a legend, units, a clock for an axis, and marks where something
changed.

Pure: values in, text out. Colours are classes, so that the page's style gives them for light and dark; each line also
has a dash of its own, so that no one needs colours to tell them apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from penstock.interfaces.report.scales import (
    Point,
    format_moment,
    format_tick,
    thin,
    time_ticks,
    value_ticks,
)

WIDTH, HEIGHT = 460, 236
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 12, 54, 28
_LETTER = 6.1
"""Width of a letter of the legend (its real one depends on the reader's fonts)."""


@dataclass(frozen=True, slots=True)
class Series:
    """One line. `tone` is one of a to e, in the page's style."""

    name: str
    points: tuple[Point, ...]
    """(seconds from the start, value); NaN is a gap, infinity the top."""
    tone: str
    shape: Literal["line", "step"] = "line"
    dash: str = ""
    filled: bool = False
    sets_scale: bool = True
    """False: where it is far above the others, it is cut off rather than flattening them."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A moment at which something changed."""

    at: float
    label: str
    hint: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A plot's whole content."""

    title: str
    unit: str
    series: tuple[Series, ...]
    end_seconds: float
    marks: tuple[Mark, ...] = ()
    show_labels: bool = False
    """Write each mark's label beside it."""


def draw_plot(plot: Plot) -> str:
    """The plot as an `<svg>` element."""
    ticks = value_ticks(_top(plot.series))
    frame = _Frame(max(plot.end_seconds, 1e-9), ticks[-1])
    cut = [s.name for s in plot.series if _highest(s.points) > ticks[-1] * 1.001]
    note = f" ({', '.join(cut)} cut at the top)" if cut else ""
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" class="plot">',
        f"<title>{escape(plot.title)}, {escape(plot.unit)}{escape(note)}</title>",
        f'<text x="{_LEFT}" y="16" class="title">{escape(plot.title)}'
        f'<tspan class="unit" dx="6">{escape(plot.unit + note)}</tspan></text>',
        *_legend(plot.series),
        *_axes(frame, ticks, plot.end_seconds),
        *_marks(frame, plot.marks, plot.show_labels),
        *(_line(frame, each) for each in plot.series),
        "</svg>",
    ]
    return "\n".join(part for part in parts if part)


@dataclass(frozen=True, slots=True)
class _Frame:
    """From values to places on the paper."""

    end_seconds: float
    top: float

    def x(self, seconds: float) -> float:
        share = min(max(seconds / self.end_seconds, 0.0), 1.0)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = min(max(value / self.top, 0.0), 1.0)
        return round(HEIGHT - _BOTTOM - share * (HEIGHT - _TOP - _BOTTOM), 1)


def _highest(points: Iterable[Point]) -> float:
    return max((y for _, y in points if math.isfinite(y)), default=0.0)


def _top(series: Sequence[Series]) -> float:
    """The highest value to show: lines that don't set the scale get twice the room of those that do."""
    leading = max((_highest(s.points) for s in series if s.sets_scale), default=0.0)
    others = max((_highest(s.points) for s in series if not s.sets_scale), default=0.0)
    return max(leading, min(others, 2.2 * leading) if leading > 0 else others)


def _legend(series: Sequence[Series]) -> list[str]:
    parts: list[str] = []
    x = float(_LEFT)
    for each in series:
        parts.append(
            f'<line x1="{x:.0f}" x2="{x + 20:.0f}" y1="32" y2="32" class="line {each.tone}"{_dash(each)}/>'
            f'<text x="{x + 25:.0f}" y="36" class="key">{escape(each.name)}</text>'
        )
        x += 25 + _LETTER * len(each.name) + 16
    return parts


def _axes(frame: _Frame, ticks: Sequence[float], end_seconds: float) -> list[str]:
    right, floor = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    parts = [
        f'<line x1="{_LEFT}" x2="{right}" y1="{frame.y(value)}" y2="{frame.y(value)}" class="grid"/>'
        f'<text x="{_LEFT - 6}" y="{frame.y(value) + 4}" class="tick end">{format_tick(value)}</text>'
        for value in ticks
    ]
    for moment in time_ticks(end_seconds):
        x = frame.x(moment)
        parts.append(
            f'<line x1="{x}" x2="{x}" y1="{floor}" y2="{floor + 4}" class="axis"/>'
            f'<text x="{x}" y="{floor + 17}" class="tick middle">{format_moment(moment)}</text>'
        )
    parts.append(f'<line x1="{_LEFT}" x2="{right}" y1="{floor}" y2="{floor}" class="axis"/>')
    return parts


def _marks(frame: _Frame, marks: Sequence[Mark], labels: bool) -> list[str]:
    """A line from top to bottom at each change; labels where they don't run into each other."""
    parts: list[str] = []
    free_from = 0.0
    for mark in marks:
        x = frame.x(mark.at)
        label = ""
        width = _LETTER * len(mark.label)
        if labels and x >= free_from:
            free_from = x + width + 8
            left = x + width + 6 > WIDTH
            place = f'x="{x - 4}" class="label end"' if left else f'x="{x + 4}" class="label"'
            label = f'<text {place} y="{_TOP + 9}">{escape(mark.label)}</text>'
        parts.append(
            f'<g><title>{escape(mark.hint)}</title><line x1="{x}" x2="{x}" y1="{_TOP - 4}" y2="{HEIGHT - _BOTTOM}" '
            f'class="mark"/><path d="M{x - 4} {_TOP - 8}h8l-4 6z" class="flag"/>{label}</g>'
        )
    return parts


def _line(frame: _Frame, series: Series) -> str:
    runs = _runs(thin(series.points))
    path = " ".join(_path(frame, run, series.shape) for run in runs)
    if not path:
        return ""
    fill = ""
    if series.filled:
        floor = frame.y(0)
        closed = " ".join(f"{_path(frame, run, series.shape)}V{floor}H{frame.x(run[0][0])}Z" for run in runs)
        fill = f'<path d="{closed}" class="area {series.tone}"/>'
    return f'{fill}<path d="{path}" class="line {series.tone}"{_dash(series)}/>'


def _runs(points: Sequence[Point]) -> list[list[Point]]:
    """Stretches without a gap."""
    runs: list[list[Point]] = [[]]
    for x, y in points:
        if math.isnan(x) or math.isnan(y):
            runs.append([])
        else:
            runs[-1].append((x, y))
    return [run for run in runs if run]


def _path(frame: _Frame, run: Sequence[Point], shape: str) -> str:
    first, *rest = run
    steps = [f"M{frame.x(first[0])} {frame.y(first[1])}"]
    for x, y in rest:
        steps.append(f"H{frame.x(x)}V{frame.y(y)}" if shape == "step" else f"L{frame.x(x)} {frame.y(y)}")
    if not rest:
        steps.append("h1")
    return "".join(steps)


def _dash(series: Series) -> str:
    return f' stroke-dasharray="{series.dash}"' if series.dash else ""
