"""Draws the pipeline: topics as pills, jobs as boxes with their threads, left to right. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from penstock.model.status import RunHeader

_GAP, _ROW, _BOX, _LETTER = 34, 58, 40, 7.2


@dataclass(frozen=True, slots=True)
class _Node:
    name: str
    job: bool


def draw_graph(header: RunHeader, notes: Mapping[str, str]) -> str:
    """An `<svg>`; `notes` is a line under each job's name. Empty when the run tells of no edges."""
    links = _links(header)
    if not links:
        return ""
    columns = _columns(links)
    widths = [max(_width(node, notes) for node in column) for column in columns]
    lefts = [20 + sum(widths[:i]) + _GAP * i for i in range(len(columns))]
    height = _ROW * max(len(column) for column in columns) + 12
    spots: dict[_Node, tuple[float, float, float]] = {}
    for left, width, column in zip(lefts, widths, columns, strict=True):
        top = (height - _ROW * len(column)) / 2
        for row, node in enumerate(column):
            spots[node] = (left, top + _ROW * row + (_ROW - _BOX) / 2, width)
    total = lefts[-1] + widths[-1] + 20
    parts = [
        f'<svg viewBox="0 0 {total:.0f} {height:.0f}" style="max-width:{total:.0f}px" role="img" class="graph">',
        "<title>The pipeline</title>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0L8 4L0 8z" class="tip"/></marker></defs>',
        *(_edge(spots[a], spots[b]) for a, b in links),
        *(_draw(node, spot, notes.get(node.name, "")) for node, spot in spots.items()),
        "</svg>",
    ]
    return "\n".join(parts)


def _links(header: RunHeader) -> list[tuple[_Node, _Node]]:
    links: dict[tuple[_Node, _Node], None] = {}
    for writer, topic, reader in header.edges:
        middle = _Node(topic, False)
        if writer:
            links[_Node(writer, True), middle] = None
        if reader:
            links[middle, _Node(reader, True)] = None
    return list(links)


def _columns(links: Sequence[tuple[_Node, _Node]]) -> list[list[_Node]]:
    """Each node one column right of all that lead to it; a loop (which runs refuse) stops where it closes."""
    nodes = list(dict.fromkeys(node for link in links for node in link))
    depth = dict.fromkeys(nodes, 0)
    for _ in nodes:
        for a, b in links:
            depth[b] = max(depth[b], min(depth[a] + 1, len(nodes)))
    levels = sorted(set(depth.values()))
    return [[node for node in nodes if depth[node] == level] for level in levels]


def _width(node: _Node, notes: Mapping[str, str]) -> float:
    return max(len(node.name), len(notes.get(node.name, "")) * 0.92) * _LETTER + 24


def _edge(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    x1, y1, x2, y2 = start[0] + start[2], start[1] + _BOX / 2, end[0], end[1] + _BOX / 2
    bend = (x2 - x1) / 2
    return (
        f'<path d="M{x1:.0f} {y1:.0f}C{x1 + bend:.0f} {y1:.0f} {x2 - bend:.0f} {y2:.0f} {x2:.0f} {y2:.0f}" '
        'class="wire" marker-end="url(#tip)"/>'
    )


def _draw(node: _Node, spot: tuple[float, float, float], note: str) -> str:
    x, y, width = spot
    kind, radius = ("job", 6) if node.job else ("topic", _BOX / 2 - 4)
    inset = 0 if node.job else 4
    first = y + (17 if note else 25)
    second = (
        f'<text x="{x + width / 2:.0f}" y="{y + 32:.0f}" class="note">{escape(note)}</text>' if note else ""
    )
    return (
        f'<rect x="{x:.0f}" y="{y + inset:.0f}" width="{width:.0f}" height="{_BOX - 2 * inset}" rx="{radius}" '
        f'class="{kind}"/><text x="{x + width / 2:.0f}" y="{first:.0f}" class="name">{escape(node.name)}</text>{second}'
    )
