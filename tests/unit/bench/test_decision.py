"""The decision's peers give the decision's own answers, so that only time is compared."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import cast

from typer.testing import CliRunner

from penstock.bench.decision import GOALS, DecisionBench, Round, decision_benches
from penstock.bench.decision_peers import NumpyPass, PythonLoop
from penstock.bench.decision_world import INSTANCES, make_fleet, make_observations
from penstock.interfaces.cli import build_app
from penstock.model.decisions import Decision
from penstock.model.graph import order_jobs
from penstock.ports.clock import Clock
from penstock.ports.services import Services


def test_peers_find_the_same_threads_as_the_decision() -> None:
    pipeline = make_fleet(30)
    ours, loop, numpy_pass = Round(pipeline), PythonLoop(pipeline), NumpyPass(pipeline)
    for observation in make_observations(pipeline, 5):
        decision = ours(observation)
        assert isinstance(decision, Decision)
        wanted = {proposal.job: proposal.proposed for proposal in decision.proposals}
        assert loop(observation) == wanted
        assert dict(zip(order_jobs(pipeline), numpy_pass(observation).tolist(), strict=True)) == wanted


def test_the_measured_round_is_the_usual_one() -> None:
    pipeline = make_fleet(10)
    ours = Round(pipeline)
    verdicts: list[str] = []
    for observation in make_observations(pipeline, 8):
        decision = ours(observation)
        assert isinstance(decision, Decision)
        assert not decision.actions
        verdicts.append(decision.verdict)
    assert verdicts[-1] == "hold"


def test_it_reads_every_instance() -> None:
    observation = make_observations(make_fleet(10), 1)[0]
    assert {len(w.stages[0].instances) for w in observation.windows.values()} == {INSTANCES}


def test_rows_are_what_the_command_shows() -> None:
    told: list[str] = []
    rows = DecisionBench(10).run(True, told.append)
    fields = ["name", "unit", "ours", "peer", "peer_name", "ratio", "goal", "met"]
    assert [list(row) for row in rows] == [fields, fields]
    assert [row["peer_name"] for row in rows] == ["Python loop", "NumPy pass"]
    assert told


def test_the_goal_is_about_the_largest_fleet() -> None:
    assert [bench.name for bench in decision_benches()] == ["operators-10", "operators-100", "operators-1000"]
    assert str(GOALS[1_000]) == "<= 3"


class OnlyBenches:
    """As much of the services as the command asks for."""

    def benches(self, family: str) -> Sequence[DecisionBench]:
        return decision_benches() if family == "decision" else ()


def test_the_command_prints_them_for_programs() -> None:
    app = build_app(cast("Services", OnlyBenches()), cast("Clock", None))
    done = CliRunner().invoke(app, ["bench", "decision", "--only", "operators-10", "--quick", "-o", "json"])
    assert done.exit_code == 0, done.output
    assert [row["name"] for row in json.loads(done.stdout)] == ["10 operators"] * 2
    assert "operators-10" in done.stderr
