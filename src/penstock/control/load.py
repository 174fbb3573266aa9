"""Gives a topic records at a rate that follows a plan: for trials, demos and benchmarks.

`Schedule` is pure: how many records are due by when. `Load` appends what is due by absolute deadlines, so that a stall is
caught up with and the total is exact; like every loop it owns no thread, never sleeps, and makes one call a step.
"""

from __future__ import annotations

import bisect
import csv
import io
import math
from dataclasses import dataclass
from typing import Literal, Protocol

from penstock.model.errors import SpecError
from penstock.model.records import Record
from penstock.model.units import parse_rate_per_second, parse_seconds
from penstock.ports.topics import Topics

TICK_SECONDS = 0.1
"""Records due within this time go together: fewer, larger appends."""
APPEND_MOST = 10_000
"""Records in one append: a step stays short while it catches up."""
Shape = Literal["step", "linear"]


class RecordMaker(Protocol):
    """Makes records, one after another."""

    def take(self, count: int, timestamp_ms: int) -> list[Record]: ...


@dataclass(frozen=True, slots=True)
class Schedule:
    """A rate over time. `step` holds each rate until the next point, `linear` goes to it; the last rate goes on."""

    points: tuple[tuple[float, float], ...]
    """(seconds from the start, records per second), the first at 0."""
    shape: Shape = "step"
    end_seconds: float = math.inf

    def rate_at(self, seconds: float) -> float:
        """Records per second at a moment."""
        if not 0 <= seconds < self.end_seconds:
            return 0.0
        i = bisect.bisect_right(self.points, (seconds, math.inf)) - 1
        start, rate = self.points[i]
        return rate + self._slope(i) * (seconds - start)

    def records_by(self, seconds: float) -> float:
        """Records due from the start to a moment: the area under the rate."""
        until = min(max(seconds, 0.0), self.end_seconds)
        total = 0.0
        for i, (start, rate) in enumerate(self.points):
            if start >= until:
                break
            length = min(until, self._end_of(i)) - start
            total += rate * length + self._slope(i) * length * length / 2
        return total

    def time_of(self, records: float) -> float:
        """Seconds from the start at which that many records are due; infinite when they never are."""
        left = records
        for i, (start, rate) in enumerate(self.points):
            end = min(self._end_of(i), self.end_seconds)
            length = end - start
            if length <= 0:
                break
            slope = self._slope(i)
            area = math.inf if math.isinf(length) and rate > 0 else 0.0
            if math.isfinite(length):
                area = rate * length + slope * length * length / 2
            if left <= area and left > 0:
                return min(end, start + _time_under(rate, slope, left))
            left -= area
        return math.inf if left > 1e-9 else min(self.end_seconds, self.points[-1][0])

    def _end_of(self, i: int) -> float:
        return self.points[i + 1][0] if i + 1 < len(self.points) else math.inf

    def _slope(self, i: int) -> float:
        if self.shape == "step" or i + 1 >= len(self.points):
            return 0.0
        (start, rate), (end, then) = self.points[i], self.points[i + 1]
        return (then - rate) / (end - start)


def _time_under(rate: float, slope: float, records: float) -> float:
    """The root of rate t + slope t^2 / 2 = records, in the form that keeps its digits."""
    return 2 * records / (rate + math.sqrt(max(0.0, rate * rate + 2 * slope * records)))


def plan_constant(rate_per_second: float, for_seconds: float = math.inf) -> Schedule:
    """One rate, to the end."""
    return Schedule(((0.0, rate_per_second),), "step", for_seconds)


def read_schedule(text: str, shape: Shape, name: str, for_seconds: float = math.inf) -> Schedule:
    """A CSV of `seconds,rate` (with units or plain); rows ascend, the first is at 0. A last rate of 0 ends it."""
    points: list[tuple[float, float]] = []
    for line, row in enumerate(csv.reader(io.StringIO(text)), start=1):
        place = f"{name}:{line}"
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells[0].startswith("#") or (not points and cells[0] == "seconds"):
            continue
        if len(cells) != 2:
            raise SpecError(
                "--rates", ",".join(row), "is not seconds,rate", "write two values, like 60,100/s", place
            )
        try:
            point = (parse_seconds("seconds", cells[0]), parse_rate_per_second("rate", cells[1]))
        except SpecError as error:
            raise error.at(place) from None
        if points and point[0] <= points[-1][0]:
            raise SpecError(
                "seconds", cells[0], "is not after the row before", "let the seconds ascend", place
            )
        if not points and point[0] > 0:
            points.append((0.0, 0.0 if shape == "step" else point[1]))
        points.append(point)
    if not points:
        raise SpecError("--rates", name, "has no rows", "write rows of seconds,rate, like 0,100", name)
    end = points[-1][0] if points[-1][1] == 0 else math.inf
    return Schedule(tuple(points), shape, min(end, for_seconds))


class Load:
    """Appends a schedule's records to a topic; `step` until it returns None."""

    def __init__(
        self, topics: Topics, topic: str, schedule: Schedule, maker: RecordMaker, started_at: float
    ) -> None:
        self._topics, self._topic, self._schedule, self._maker = topics, topic, schedule, maker
        self._started_at = started_at
        self.sent = 0
        self.behind_most_seconds = 0.0
        """The longest that a record was late."""

    def step(self, now: float) -> float | None:
        """Append what is due, at most one call's worth; when to wake next, or None at the end."""
        elapsed = now - self._started_at
        due = math.floor(self._schedule.records_by(elapsed) + 1e-6)
        if due > self.sent:
            late = elapsed - self._schedule.time_of(self.sent + 1)
            self.behind_most_seconds = max(self.behind_most_seconds, late)
            count = min(due - self.sent, APPEND_MOST)
            self._topics.append(self._topic, self._maker.take(count, int(now * 1000)))
            self.sent += count
            if self.sent < due:
                return now
        following = self._schedule.time_of(self.sent + 1)
        if math.isinf(following):
            return None
        ticks = math.ceil(round(following / TICK_SECONDS, 6))
        wake = min(ticks * TICK_SECONDS, max(following, self._schedule.end_seconds))
        return self._started_at + max(wake, following)

    def rate_now(self, now: float) -> float:
        """Records per second that the schedule asks for."""
        return self._schedule.rate_at(now - self._started_at)
