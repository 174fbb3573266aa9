"""The one shape that every strategy has, and their names.

A strategy is a pure state machine: `start` makes its state for a pipeline, `decide` turns state and observation into
state and decision. It is told the time, and knows neither clocks nor what carries its decision out.
"""

from __future__ import annotations

from typing import Any, Protocol

from penstock.core.controller.dhalion import Dhalion
from penstock.core.controller.dynamic_allocation import DynamicAllocation
from penstock.core.controller.sizing import DS2, PENSTOCK, SizingStrategy
from penstock.core.controller.static import Static
from penstock.model.decisions import Decision
from penstock.model.errors import SpecError
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import Observation


class Strategy(Protocol):
    """Decides sizes, one pipeline at a time. Its state is its own business."""

    @property
    def name(self) -> str: ...

    def start(self, pipeline: PipelineSpec) -> Any:
        """State before the first round; a cycle is a `SpecError` that names its jobs."""
        ...

    def decide(self, state: Any, observation: Observation, now: float) -> tuple[Any, Decision]:
        """One round."""
        ...


STRATEGIES: tuple[str, ...] = ("penstock", "ds2", "dhalion", "spark_dynamic_allocation", "static")


def strategy_named(name: str) -> Strategy:
    """The strategy of that name; a `SpecError` lists those there are."""
    known: dict[str, Strategy] = {
        "penstock": SizingStrategy(PENSTOCK),
        "ds2": SizingStrategy(DS2),
        "dhalion": Dhalion(),
        "spark_dynamic_allocation": DynamicAllocation(),
        "static": Static(),
    }
    if name not in known:
        raise SpecError("strategy", name, "is not known", f"choose one of {', '.join(STRATEGIES)}")
    return known[name]
