"""One line of a benchmark's table: ours beside a peer's, and whether the goal is met."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

Better = Literal["lower", "higher"]


@dataclass(frozen=True, slots=True)
class BenchRow:
    """What was measured, as `penstock bench` shows it."""

    name: str
    unit: str
    ours: float
    peer: float
    peer_name: str
    ratio: float
    """Ours / the peer's; NaN when the peer's is zero or unknown."""
    goal: str | None
    """What the ratio should be, like `<= 3`; none where nothing is promised."""
    met: bool | None

    def as_row(self) -> dict[str, object]:
        """For tables and JSON."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Goal:
    """A promise about a ratio."""

    ratio: float
    better: Better = "lower"

    def __str__(self) -> str:
        return f"{'<=' if self.better == 'lower' else '>='} {self.ratio:g}"

    def holds(self, ratio: float) -> bool:
        """A ratio that is not known meets no goal."""
        return ratio <= self.ratio if self.better == "lower" else ratio >= self.ratio


def compare(name: str, unit: str, ours: float, peer: tuple[str, float], goal: Goal | None = None) -> BenchRow:
    """A row from two measurements; `peer` is its name and its measurement."""
    peer_name, other = peer
    ratio = ours / other if other else math.nan
    return BenchRow(
        name,
        unit,
        ours,
        other,
        peer_name,
        ratio,
        None if goal is None else str(goal),
        None if goal is None else goal.holds(ratio),
    )


def skip(name: str, unit: str, peer_name: str, goal: Goal | None = None) -> BenchRow:
    """A row for what could not be measured here: it meets nothing and misses nothing."""
    return BenchRow(
        name, unit, math.nan, math.nan, peer_name, math.nan, None if goal is None else str(goal), None
    )
