"""What the scaling manager makes of what an action brought: nothing, which ends in an alert, or harm, which is undone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fleets import Fleet, Pilot, make_job, make_pipeline
from penstock.model.decisions import ScaleThreads
from penstock.model.observations import JobWindow
from scenes import COST, calm, knobs, one_job, pilot_of, reason

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


# Actions without effect


def vain(held: JobWindow) -> JobWindow:
    """Of the job x: each size looks as if a few threads more would do, and none brings anything."""
    if held.job != "x":
        return held
    records = 1_000.0 * held.elapsed_seconds
    useful = held.elapsed_seconds * 0.11 * held.threads
    stage = replace(
        held.stages[0], useful_seconds=useful, records_in=records, longest_seconds=0.0, instances=()
    )
    return replace(held, records_in={"a": records}, stages=(stage,))


def test_actions_without_gain_end_in_an_alert_that_is_said_once() -> None:
    fleet = one_job(10_000.0, 2, scaling=knobs(max_ineffective=3))
    fleet.change_window = vain
    pilot = pilot_of(fleet)
    for _ in range(12):
        pilot.step(calm)
    verdicts = [d.verdict for d in pilot.decisions]
    assert verdicts == ["scale"] * 3 + ["alert"] + ["hold"] * 8
    assert "brought nothing for x" in pilot.decisions[3].reason
    assert "stops trying" in reason(pilot), "it stays visible in the job's proposal"
    assert "x (more threads bring nothing)" in pilot.decisions[-1].reason
    stuck = fleet.threads["x"]
    fleet.rates["a"] = 14_000.0
    pilot.step(calm)
    assert fleet.threads["x"] > stuck, "another demand is another matter"


def two_strangers() -> tuple[Fleet, Pilot]:
    """x gets nowhere; y stands by itself and follows its source."""
    jobs = (make_job("x", ["a"], scaling=knobs()), make_job("y", ["b"], scaling=knobs()))
    fleet = Fleet(
        make_pipeline(*jobs), {"x": COST, "y": COST}, {}, {"a": 10_000.0, "b": 1_000.0}, {"x": 2, "y": 1}
    )
    fleet.change_window = vain
    return fleet, pilot_of(fleet)


def test_an_alert_is_not_hidden_by_another_jobs_action() -> None:
    fleet, pilot = two_strangers()
    for _ in range(3):
        pilot.step(calm)
    fleet.rates["b"] = 5_000.0
    decision = pilot.step(calm)
    assert decision.verdict == "alert" and fleet.threads["y"] == 5
    assert "brought nothing for x" in decision.reason and "y 1 -> 5" in decision.reason


def test_an_alert_that_stands_hides_nobody_elses_action_and_is_not_said_again() -> None:
    fleet, pilot = two_strangers()
    for _ in range(4):
        pilot.step(calm)
    for rate in (5_000.0, 7_000.0, 9_000.0):
        fleet.rates["b"] = rate
        decision = pilot.step(calm)
        assert decision.verdict == "scale" and "nothing" not in decision.reason
        assert "stops trying" in reason(pilot)


def test_an_alert_is_visible_while_a_neighbour_warms_up() -> None:
    jobs = (make_job("x", ["a"], scaling=knobs()), make_job("y", ["a"], scaling=knobs(warm_up_windows=2)))
    fleet = Fleet(make_pipeline(*jobs), {"x": COST, "y": COST}, {}, {"a": 10_000.0}, {"x": 2, "y": 10})
    fleet.change_window = vain
    pilot = pilot_of(fleet)
    while "alert" not in [d.verdict for d in pilot.decisions]:
        pilot.step(calm)
    fleet.threads["y"] = 5
    while "settle" not in reason(pilot, "y"):
        pilot.step(calm)
    assert "stops trying" in reason(pilot)


def test_actions_with_gain_never_alert() -> None:
    fleet = one_job(2_000.0, scaling=knobs(max_ineffective=1))
    pilot = pilot_of(fleet)
    for rate in (2_000.0, 4_000.0, 8_000.0, 16_000.0, 32_000.0):
        fleet.rates["a"] = rate
        pilot.step(calm), pilot.step(calm)
    assert {d.verdict for d in pilot.decisions} <= {"scale", "hold"} and fleet.threads["x"] == 32


# Undoing what made things worse


def worse_at(size: int, fleet: Fleet, name: str = "x") -> None:
    """From that size on, every record costs three times as much."""

    def crowded(held: JobWindow) -> JobWindow:
        if held.threads < size or held.job != name:
            return held
        stages = tuple(
            replace(s, useful_seconds=3 * s.useful_seconds, longest_seconds=3 * s.longest_seconds)
            for s in held.stages
        )
        return replace(held, stages=stages)

    fleet.change_window = crowded


def test_an_action_that_made_things_worse_is_undone_and_its_size_barred() -> None:
    fleet = one_job(5_000.0, 4)
    worse_at(5, fleet)
    pilot = pilot_of(fleet)
    pilot.step(calm)
    assert fleet.threads["x"] == 5
    undone = pilot.step(calm)
    assert undone.verdict == "roll_back" and undone.actions == (ScaleThreads("x", 4, undone.id),)
    assert "carry less" in reason(pilot)
    for _ in range(6):
        pilot.step(calm)
        assert fleet.threads["x"] == 4
    assert sum(d.verdict == "roll_back" for d in pilot.decisions) == 1
    assert "barred" in reason(pilot)


def test_a_barred_size_is_jumped_over_when_more_is_needed() -> None:
    fleet = one_job(5_000.0, 4)
    worse_at(5, fleet)
    pilot = pilot_of(fleet)
    pilot.step(calm), pilot.step(calm)
    fleet.change_window = lambda held: held
    fleet.rates["a"] = 7_000.0
    pilot.step(calm)
    assert fleet.threads["x"] == 7


def test_another_demand_is_no_proof_that_an_action_made_things_worse() -> None:
    fleet = one_job(5_000.0, 4)
    worse_at(5, fleet)
    pilot = pilot_of(fleet)
    pilot.step(calm)
    fleet.rates["a"] = 5_900.0
    assert pilot.step(calm).verdict != "roll_back"


def test_a_loss_within_the_knob_is_borne() -> None:
    fleet = one_job(5_000.0, 4, scaling=knobs(roll_back_loss=0.9))
    worse_at(5, fleet)
    pilot = pilot_of(fleet)
    pilot.step(calm)
    assert pilot.step(calm).verdict != "roll_back"


def test_what_made_things_worse_is_undone_though_a_neighbour_still_warms_up() -> None:
    """It waits for the neighbour, as every change does; it is not forgotten meanwhile."""
    jobs = (
        make_job("x", ["a"], ["b"], scaling=knobs(warm_up_windows=1)),
        make_job("slow", ["b"], scaling=knobs(warm_up_windows=4)),
    )
    fleet = Fleet(
        make_pipeline(*jobs), {"x": COST, "slow": COST}, {("x", "b"): 1.0}, {"a": 5_000.0}, {"x": 4, "slow": 4}
    )  # fmt: skip
    worse_at(5, fleet)
    pilot = pilot_of(fleet)
    for _ in range(12):
        pilot.step(calm)
    assert sum(d.verdict == "roll_back" for d in pilot.decisions) == 1 and fleet.threads["x"] == 4


def test_scaling_in_is_never_taken_for_a_loss() -> None:
    fleet = one_job(3_000.0, 10)
    pilot = pilot_of(fleet)
    pilot.step(calm), pilot.step(calm)
    assert fleet.threads["x"] == 3 and pilot.decisions[-1].verdict == "hold"
