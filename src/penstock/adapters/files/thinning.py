"""Keeps a journal within its bound: what is old is thinned, what is new stays as it was written.

A thinned journal is its first line, a marker, a *head* of chosen older lines, and a *tail* of all newer ones. Positions
that readers hold count the bytes of the journal as if nothing had been left out: each line of the head carries its own
(`position`), and the marker says where the tail begins. So a reader that follows goes on across a thinning, and one
that was far behind still gets every line of the head that it has not seen.

Chosen are events and decisions that changed or told something, and statuses evenly spread over the run's time. Older
batches, samples of the container and quiet decisions go. It knows lines, not entries, and touches no files.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

POSITION = "position"
"""In a line of the head: where the journal stood after that line was written."""
_THINNED = "thinned"
_MARKER = b'{"entry":"' + _THINNED.encode() + b'"'
_STATUS, _EVENT, _DECISION = (b'{"entry":"' + kind + b'"' for kind in (b"status", b"event", b"decision"))
_TELLING = ("alert", "roll_back")
_AT = re.compile(rb'"at":(-?[0-9][0-9.e+-]*)')
_TAIL, _KEPT, _STATUSES = 4, 4, 8
"""Shares of the bound (a quarter, a quarter, an eighth) for the tail, what is kept, and older statuses."""


@dataclass(frozen=True)
class Marker:
    """What the second line of a thinned journal says."""

    position: int
    """Where the tail begins, in the journal as it was written."""
    head_bytes: int
    dropped: int = 0
    """Events and decisions that had to go all the same."""
    dropped_at: float = 0.0
    """Time of the newest of them."""

    def line(self) -> bytes:
        return json.dumps({"entry": _THINNED, **vars(self)}, separators=(",", ":")).encode() + b"\n"


class _Line(NamedTuple):
    data: bytes
    """With the line's end."""
    position: int
    in_head: bool


def read_marker(line: bytes) -> Marker | None:
    """The marker, where a journal's second line is one that can be read."""
    if not line.startswith(_MARKER):
        return None
    given = _read(line)
    held = [given.get(name) for name in ("position", "head_bytes", "dropped")]
    at = given.get("dropped_at")
    if not all(isinstance(each, int) and each >= 0 for each in held) or not isinstance(at, int | float):
        return None
    return Marker(given["position"], given["head_bytes"], given["dropped"], at)


def position_of(line: bytes, before: int) -> int:
    """The position that a line of the head carries; that of the one before it where it cannot be read."""
    position = _read(line).get(POSITION)
    return position if isinstance(position, int) else before


def thin(data: bytes, bound: int) -> bytes:
    """A journal within about five eighths of its bound (bytes); `data` is whole lines."""
    first, marker, lines = _lines(data)
    tail = _tail(lines, bound // _TAIL)
    older = lines[: len(lines) - len(tail)]
    kept = [number for number, line in enumerate(older) if _is_kept(line.data)]
    room, fit = bound // _KEPT, len(kept)
    while fit and (room := room - len(older[kept[fit - 1]].data)) >= 0:
        fit -= 1
    gone = [older[number] for number in kept[:fit]]
    chosen = sorted({*kept[fit:], *_spread(older, bound // _STATUSES)})
    head = b"".join(_with_position(older[number]) for number in chosen)
    begin = older[-1].position if older else marker.position if marker else len(first)
    dropped = marker or Marker(0, 0)
    at = (_time(gone[-1].data) if gone else None) or dropped.dropped_at
    newer = Marker(begin, len(head), dropped.dropped + len(gone), at)
    return first + newer.line() + head + b"".join(line.data for line in tail)


def _lines(data: bytes) -> tuple[bytes, Marker | None, list[_Line]]:
    """The first line, the marker, and all others with their positions."""
    first, *rest = data.splitlines(keepends=True)
    marker = read_marker(rest[0]) if rest else None
    found: list[_Line] = []
    position, head_left = len(first), 0
    if marker is not None:
        rest, head_left = rest[1:], marker.head_bytes
    for line in rest:
        in_head = head_left > 0
        if in_head:
            head_left -= len(line)
            position = position_of(line, position)
        else:
            if marker is not None and (not found or found[-1].in_head):
                position = marker.position
            position += len(line)
        found.append(_Line(line, position, in_head))
    return first, marker, found


def _tail(lines: Sequence[_Line], room: int) -> Sequence[_Line]:
    """The newest lines that fit, at least one, and none that stands in a head."""
    at = len(lines)
    while at and not lines[at - 1].in_head and (at == len(lines) or len(lines[at - 1].data) <= room):
        at -= 1
        room -= len(lines[at].data)
    return lines[at:]


def _is_kept(line: bytes) -> bool:
    if line.startswith(_EVENT):
        return True
    if not line.startswith(_DECISION):
        return False
    given = _read(line)
    return bool(given.get("actions")) or given.get("verdict") in _TELLING


def _spread(lines: Sequence[_Line], room: int) -> list[int]:
    """Statuses evenly over their time, as many as fit in `room` bytes: a number of each."""
    statuses = [
        (number, at)
        for number, line in enumerate(lines)
        if line.data.startswith(_STATUS) and (at := _time(line.data)) is not None
    ]
    if not statuses:
        return []
    begin, end = statuses[0][1], max(at for _, at in statuses)
    size = sum(len(lines[number].data) for number, _ in statuses)
    pieces = max(int(len(statuses) * min(room / size, 1.0)), 1)
    while True:
        step = (end - begin) / pieces or 1.0
        chosen = list({int((at - begin) // step): number for number, at in reversed(statuses)}.values())
        if pieces == 1 or sum(len(lines[number].data) for number in chosen) <= room:
            return chosen
        pieces = pieces * 3 // 4


def _time(line: bytes) -> float | None:
    found = _AT.search(line)
    try:
        at = math.nan if found is None else float(found[1])
    except ValueError:
        return None
    return at if math.isfinite(at) else None


def _read(line: bytes) -> dict[str, Any]:
    """What a line holds; nothing where a crash tore it, or a byte has changed."""
    try:
        given: Any = json.loads(line)
    except ValueError:
        return {}
    return cast("dict[str, Any]", given) if isinstance(given, dict) else {}


def _with_position(line: _Line) -> bytes:
    """A line as the head holds it; empty where it cannot be read."""
    if line.in_head or not (given := _read(line.data)):
        return line.data if line.in_head else b""
    return json.dumps({**given, POSITION: line.position}, separators=(",", ":")).encode() + b"\n"
