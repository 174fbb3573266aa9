"""How long one round of decisions takes, for pipelines of growing size, beside a loop and one NumPy pass.

All get the same observations, as the autoscaler's loop hands them over. Ours is the whole round: it also remembers, checks
every number, weighs knobs, and keeps what an explanation needs. The peers compute the same threads and nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.bench.decision_peers import NumpyPass, PythonLoop
from penstock.bench.decision_world import INSTANCES, make_fleet, make_observations
from penstock.bench.rows import Goal, compare
from penstock.bench.turns import WARM_UP_TURNS, take_turns
from penstock.core.controller.strategy import strategy_named
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import Observation

SIZES = (10, 100, 1_000)
GOALS: Mapping[int, Goal] = {1_000: Goal(3.0)}
"""Against the NumPy pass."""
TURNS, QUICK_TURNS = 40, 10


class DecisionBench:
    """One pipeline size."""

    def __init__(self, operators: int) -> None:
        self._operators = operators

    @property
    def name(self) -> str:
        return f"operators-{self._operators}"

    @property
    def describe(self) -> str:
        return f"one round over {self._operators:,} operators of {INSTANCES} instances each"

    def run(self, quick: bool, progress: Callable[[str], None]) -> Sequence[Mapping[str, object]]:
        """Two rows: beside the loop, and beside the NumPy pass."""
        pipeline = make_fleet(self._operators)
        turns = WARM_UP_TURNS + (QUICK_TURNS if quick else TURNS)
        progress(f"making {turns} observations")
        observations = make_observations(pipeline, turns)
        loop, numpy_pass = PythonLoop(pipeline), NumpyPass(pipeline)
        progress(f"{turns - WARM_UP_TURNS} rounds, turn by turn")
        contenders = {"ours": Round(pipeline), loop.name: loop, numpy_pass.name: numpy_pass}
        seconds = take_turns(contenders, observations)
        goals = {numpy_pass.name: GOALS.get(self._operators)}
        return [
            compare(
                f"{self._operators:,} operators",
                "ms",
                seconds["ours"] * 1_000,
                (peer, seconds[peer] * 1_000),
                goals.get(peer),
            ).as_row()
            for peer in (loop.name, numpy_pass.name)
        ]


class Round:
    """The strategy `penstock`, with its memory from round to round."""

    def __init__(self, pipeline: PipelineSpec) -> None:
        self._strategy = strategy_named("penstock")
        self._state: Any = self._strategy.start(pipeline)

    def __call__(self, observation: Observation) -> object:
        self._state, decision = self._strategy.decide(self._state, observation, observation.at)
        return decision


def decision_benches() -> Sequence[DecisionBench]:
    """The family `decision`."""
    return tuple(DecisionBench(size) for size in SIZES)
