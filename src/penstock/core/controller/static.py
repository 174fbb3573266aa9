"""The strategy that never changes anything: what the others are compared with."""

from __future__ import annotations

from dataclasses import dataclass, replace

from penstock.core.controller.rules import Ruling, conclude, read_facts
from penstock.core.sizing.layout import Layout, lay_out
from penstock.model.decisions import Decision
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import Observation


@dataclass(frozen=True, slots=True, eq=False)
class StaticState:
    layout: Layout
    round: int = 0


class Static:
    """Holds, always."""

    @property
    def name(self) -> str:
        return "static"

    def start(self, pipeline: PipelineSpec) -> StaticState:
        """State before the first round."""
        return StaticState(lay_out(pipeline))

    def decide(
        self, state: StaticState, observation: Observation, now: float
    ) -> tuple[StaticState, Decision]:
        """One round in which nothing changes, shortage of executors included."""
        facts = read_facts(state.layout, observation, {}, now)
        ruling = Ruling(self.name, state.round + 1, now, "It never changes threads")
        fixed = replace(observation, executors_max=0)
        decision = conclude(ruling, state.layout, fixed, facts, {})
        return StaticState(state.layout, state.round + 1), decision
