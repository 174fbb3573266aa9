"""A decision in words: the printed formula is read again and computed again, number for number."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleets import START, Fleet, Pilot, make_job, make_pipeline, one_stage, proposal_of, window
from penstock.core.controller.strategy import strategy_named
from penstock.core.controller.words import list_some
from penstock.core.sizing.batch_time import JobCost
from penstock.model.decisions import JobProposal
from penstock.model.jobs import ScalingKnobs
from penstock.model.observations import Observation
from strategies import any_stage

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
NUMBER = r"[0-9.]+(?:e[+-]?[0-9]+)?"
CHAIN = ("up", "down")


def compute(text: str) -> float:
    """A printed expression as arithmetic: units away, x to *."""
    plain = re.sub(rf"({NUMBER})(?:/s| s)(?![a-z])", r"\1", text)
    plain = re.sub(r" always under way", "", plain).replace(" x ", " * ")
    assert re.fullmatch(r"(?:[-+*/(), ]|max|min|ceil|" + NUMBER + ")+", plain), plain
    return float(eval(plain, {"__builtins__": {}}, {"max": max, "min": min, "ceil": math.ceil}))


def lines_of(proposal: JobProposal) -> dict[str, str]:
    """The formula's lines by their first word."""
    return {line.split()[0].rstrip(":"): line for line in proposal.formula.splitlines()}


def check_batch_line(line: str, proposal: JobProposal, threads: int) -> None:
    """`label: D(p) = a + b = d s <= L s, D(p - 1) = e s > L s -> p`, every number of it."""
    head = re.search(rf"D\((\d+)\) = (.*) = ({NUMBER}) s (<=|>) ({NUMBER}) s", line.split(", D(")[0])
    assert head is not None, line
    p, expression, took, sign, objective = head.groups()
    assert int(p) == max(1, threads) and line.endswith(f"-> {p}")
    assert compute(expression) == pytest.approx(float(took), rel=1e-4)
    assert float(objective) == pytest.approx(proposal.evidence.objective_seconds, rel=1e-5)
    assert (float(took) <= float(objective) * (1 + 1e-5)) == (sign == "<=") or math.isclose(
        float(took), float(objective), rel_tol=1e-5
    )
    if int(p) > 1:
        assert re.search(rf", D\({int(p) - 1}\) = {NUMBER} s (<=|>) {NUMBER} s", line), line


def check_formula(proposal: JobProposal, options: Any) -> None:
    lines = lines_of(proposal)
    demand = re.match(rf"demand = ({NUMBER})/s \((.*)\)", lines["demand"])
    assert demand is not None
    assert float(demand.group(1)) == pytest.approx(proposal.evidence.target_rate, rel=1e-5)
    objective = re.match(rf"L = (.*) = ({NUMBER}) s", lines["L"])
    if objective is not None and "since" not in lines["L"]:
        assert compute(objective.group(1)) == pytest.approx(float(objective.group(2)), rel=1e-5)
        assert float(objective.group(2)) == pytest.approx(proposal.evidence.objective_seconds)
    else:
        assert f"L = interval = {options.interval_seconds:g} s" in lines["L"]
    check_batch_line(lines["without"], proposal, proposal.steady)
    if "backlog" in lines:
        share = re.match(rf"backlog: (.*) / ({NUMBER}) s = ({NUMBER})/s", lines["backlog"])
        assert share is not None
        assert compute(f"{share.group(1)} / {share.group(2)}") == pytest.approx(
            float(share.group(3)), rel=1e-3, abs=1e-3
        )
        check_batch_line(lines["with"], proposal, proposal.proposed)


@st.composite
def scenes(draw: st.DrawFn) -> Fleet:
    """Two jobs in a chain, with any stages, backlogs and limits."""
    costs = {
        name: JobCost(draw(st.floats(0.0, 2.5)), tuple(draw(st.lists(any_stage, min_size=1, max_size=3))))
        for name in CHAIN
    }
    options = {
        "interval_seconds": draw(st.sampled_from([0.5, 2.0, 7.0])),
        "slo_lag_seconds": draw(st.sampled_from([1.0, 8.0, 30.0])),
        "max_threads": draw(st.sampled_from([4, 1024])),
    }
    jobs = (make_job("up", ["a"], ["b"], **options), make_job("down", ["b"], **options))
    return Fleet(
        make_pipeline(*jobs), costs, {("up", "b"): draw(st.floats(0.1, 5.0))}, {"a": draw(st.floats(0.5, 20_000))},
        dict.fromkeys(CHAIN, draw(st.integers(1, 8))),
        backlog={name: draw(st.sampled_from([0.0, 50.0, 1e5])) for name in CHAIN}, slots=draw(st.sampled_from([0, 6])),
    )  # fmt: skip


def seen_once(fleet: Fleet) -> Observation:
    """One window of each job at its true cost, whatever it could have carried."""
    rates = {"up": fleet.rates["a"], "down": fleet.rates["a"] * fleet.ratios["up", "b"]}
    windows = {
        name: window(
            name, fleet.costs[name], 10 * rates[name], fleet.threads[name], topic=topic,
            out={"b": 10 * rates["down"]} if name == "up" else {},
        )
        for name, topic in (("up", "a"), ("down", "b"))
    }  # fmt: skip
    return Observation(START + 10, windows, fleet.threads, fleet.rates, fleet.slots, backlog=fleet.backlog)


@settings(max_examples=150, deadline=None)
@given(scenes())
def test_every_printed_number_can_be_computed_again(fleet: Fleet) -> None:
    strategy = strategy_named("penstock")
    _, decision = strategy.decide(strategy.start(fleet.pipeline), seen_once(fleet), START + 10)
    for proposal in decision.proposals:
        assert proposal.evidence.target_rate > 0
        check_formula(proposal, fleet.pipeline.job(proposal.job).options)


@settings(max_examples=80, deadline=None)
@given(scenes())
def test_the_papers_formula_can_be_computed_again(fleet: Fleet) -> None:
    strategy = strategy_named("ds2")
    _, decision = strategy.decide(strategy.start(fleet.pipeline), seen_once(fleet), START + 10)
    for proposal in decision.proposals:
        line = lines_of(proposal)["pi"]
        parts = re.match(rf"pi = (ceil\(.*\)) = ceil\(({NUMBER})\) = (\d+)$", line)
        assert parts is not None, line
        whole, need, threads = parts.groups()
        assert compute(whole.removeprefix("ceil")) == pytest.approx(float(need), rel=1e-4)
        assert math.ceil(float(need) * (1 - 1e-4)) <= int(threads) <= math.ceil(float(need) * (1 + 1e-4)) or (
            float(need) < 1 and threads == "1"
        )
        limited = proposal.limit in ("max_threads", "slots")
        assert proposal.proposed == int(threads) or (limited and proposal.proposed < int(threads)) or limited


def test_the_demand_names_where_it_comes_from() -> None:
    fleet = Fleet(
        make_pipeline(make_job("up", ["a"], ["b"]), make_job("down", ["b", "c"])),
        dict.fromkeys(CHAIN, one_stage(0.001)), {("up", "b"): 20.0}, {"a": 100.0, "c": 30.0}, dict.fromkeys(CHAIN, 1),
    )  # fmt: skip
    decision = Pilot(strategy_named("penstock"), fleet).step()
    line = lines_of(proposal_of(decision, "down"))["demand"]
    assert line == "demand = 2030/s (20 b per record x 100/s of up + produced in c)"


def test_a_hand_checked_formula() -> None:
    """Word count's first step: 1,440 sentences/s at 155/s a thread, h = 0.1 s, L = 2 s."""
    fleet = Fleet(
        make_pipeline(make_job("split", ["sentences"])), {"split": one_stage(1 / 155, 0.1)}, {}, {"sentences": 1440.0},
        {"split": 1},
    )  # fmt: skip
    pilot = Pilot(strategy_named("penstock"), fleet)
    proposal = proposal_of(pilot.step(lambda s: replace(s, backlog={"split": 0.0})), "split")
    assert proposal.formula.splitlines() == [
        "demand = 1440/s (produced in sentences)",
        "L = min(2 s, 30 s - 2 s) = 2 s",
        "without a backlog: D(10) = 0.1 s + 2880 x 0.00645161 s / 10 = 1.95806 s <= 2 s, D(9) = 2.16452 s > 2 s -> 10",
    ]
    assert proposal.reason == "1 -> 10: 1,440/s need 10, 1 carries 147/s."


def test_a_corrected_target_is_said_and_used() -> None:
    fleet = Fleet(
        make_pipeline(make_job("x", ["a"])), {"x": one_stage(0.001)}, {}, {"a": 5_000.0}, {"x": 5}
    )  # fmt: skip

    def slow(held: Any) -> Any:
        seconds = held.stages[0].useful_seconds * 0.8
        stage = replace(
            held.stages[0], useful_seconds=seconds, records_in=40_000.0, longest_seconds=0.0, instances=()
        )
        grown = {"a": 500.0 * (held.ended_at - START)}
        return replace(held, records_in={"a": 40_000.0}, stages=(stage,), backlog=grown)

    fleet.change_window = slow
    pilot = Pilot(strategy_named("penstock"), fleet)
    for _ in range(4):
        pilot.step(lambda s: replace(s, backlog={"x": 0.0}))
    lines = lines_of(proposal_of(pilot.decisions[-1], "x"))
    assert lines["demand"].endswith("corrected x 1.25 (target ratio)")
    assert "12500 x 0.001 s / 7" in lines["without"]


@pytest.mark.parametrize("max_threads", [1, 1024])
def test_an_objective_without_room_is_printed_as_the_interval(max_threads: int) -> None:
    """Whatever limit is named, the L that is printed is the L that was used."""
    job = make_job("x", ["a"], interval_seconds=2.0, slo_lag_seconds=1.5, max_threads=max_threads)
    fleet = Fleet(make_pipeline(job), {"x": one_stage(0.001)}, {}, {"a": 5_000.0}, {"x": 1})
    strategy = strategy_named("penstock")
    windows = {"x": window("x", fleet.costs["x"], 5_000.0, topic="a")}
    seen = Observation(START + 10, windows, {"x": 1}, {"a": 5_000.0}, backlog={"x": 0.0})
    _, decision = strategy.decide(strategy.start(fleet.pipeline), seen, START + 10)
    assert lines_of(decision.proposals[0])["L"].startswith("L = interval = 2 s, since slo_lag 1.5 s")


def test_where_nothing_is_known_nothing_is_computed() -> None:
    fleet = Fleet(make_pipeline(make_job("x", ["a"])), {"x": one_stage(0.001)}, {}, {"a": 5e3}, {"x": 1})
    fleet.change_window = lambda held: None
    proposal = Pilot(strategy_named("penstock"), fleet).step().proposals[0]
    assert proposal.formula.startswith("nothing to compute with: no window")
    assert math.isnan(proposal.evidence.predicted_batch_seconds)


def test_every_reason_is_a_sentence() -> None:
    fleet = Fleet(
        make_pipeline(make_job("x", ["a"], scaling=ScalingKnobs(warm_up_windows=1))), {"x": one_stage(0.001)}, {},
        {"a": 5e3}, {"x": 1},
    )  # fmt: skip
    pilot = Pilot(strategy_named("penstock"), fleet)
    for rate in (5e3, 5e3, 5e3, 9e3, 9e3, 100.0, 100.0, 100.0):
        fleet.rates["a"] = rate
        decision = pilot.step()
        for text in (decision.reason, decision.proposals[0].reason):
            assert text.endswith(".") and not text.endswith("..") and "nan" not in text


def test_proposals_are_a_sequence_like_any_other() -> None:
    fleet = Fleet(
        make_pipeline(make_job("up", ["a"], ["b"]), make_job("down", ["b"])), dict.fromkeys(CHAIN, one_stage(0.001)),
        {("up", "b"): 1.0}, {"a": 5e3}, dict.fromkeys(CHAIN, 1),
    )  # fmt: skip
    proposals = Pilot(strategy_named("penstock"), fleet).step().proposals
    assert [p.job for p in proposals] == ["up", "down"] and len(proposals) == 2
    assert proposals[-1].job == "down" and [p.job for p in proposals[:1]] == ["up"]
    assert proposals == tuple(proposals) and hash(proposals) == hash(proposals)
    with pytest.raises(IndexError):
        proposals[2]


def test_long_lists_are_cut() -> None:
    assert list_some(["a", "b"]) == "a, b"
    assert list_some([str(i) for i in range(8)]) == "0, 1, 2, 3, 4 and 3 more"
