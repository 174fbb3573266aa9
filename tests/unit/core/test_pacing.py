"""The scaling manager's rules, one scene each: when a proposal becomes an action, and when it does not (MODEL 3.3)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from fleets import START, Fleet, Pilot, make_job, make_pipeline, proposal_of, suffices
from penstock.core.controller.strategy import strategy_named
from penstock.core.sizing.batch_time import JobCost, StageCost
from penstock.core.sizing.pacing import MOST_HELD_ROUNDS
from penstock.model.jobs import ScalingKnobs
from penstock.model.observations import JobWindow, Observation
from scenes import COST, calm, knobs, one_job, pilot_of, reason

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


# Warm-up


@pytest.mark.parametrize("windows", [0, 1, 3])
def test_the_start_is_warmed_up_for_so_many_windows(windows: int) -> None:
    pilot = pilot_of(one_job(5_000.0, scaling=knobs(warm_up_windows=windows)))
    verdicts = [pilot.step(calm).verdict for _ in range(windows + 1)]
    assert verdicts == ["observe"] * windows + ["scale"]


def test_every_action_is_warmed_up_again() -> None:
    fleet = one_job(5_000.0, scaling=knobs(warm_up_windows=3))
    pilot = pilot_of(fleet)
    while fleet.threads["x"] == 1:
        pilot.step(calm)
    fleet.rates["a"] = 9_000.0
    waited = 0
    while fleet.threads["x"] < 9:
        pilot.step(calm)
        waited += 1
    assert waited == 4 and fleet.threads["x"] == 9


def test_windows_of_the_old_size_do_not_warm_up() -> None:
    """The change takes a while to arrive: what still ran with the old threads says nothing of the new ones."""
    fleet = one_job(5_000.0, scaling=knobs(warm_up_windows=1))
    pilot = pilot_of(fleet)
    pilot.step(calm), pilot.step(calm)
    assert fleet.threads["x"] == 5
    fleet.rates["a"] = 9_000.0
    fleet.change_window = lambda held: replace(held, threads=1)
    for _ in range(5):
        assert pilot.step(calm).verdict == "observe"
    fleet.change_window = lambda held: held
    pilot.step(calm), pilot.step(calm)
    assert fleet.threads["x"] == 9


def test_an_action_that_was_refused_does_not_hold_the_job_for_ever() -> None:
    fleet = one_job(5_000.0, scaling=knobs(warm_up_windows=2))
    fleet.obeys = False
    pilot = pilot_of(fleet)
    asked = [bool(pilot.step(calm).actions) for _ in range(8)]
    assert asked == [False, False, True, False, False, True, False, False]
    fleet.obeys = True
    pilot.steps(3)
    assert fleet.threads["x"] >= 5


def test_an_idle_job_needs_no_warm_up() -> None:
    fleet = one_job(0.0, threads=4, scaling=knobs(warm_up_windows=3))
    fleet.change_window = lambda held: None
    pilot = pilot_of(fleet)
    for _ in range(4):
        pilot.step()
    assert fleet.threads["x"] == 1


def learning(held: JobWindow) -> JobWindow:
    """Admission still held batches small."""
    return replace(held, growing=True)


def test_windows_of_an_admission_that_learns_are_no_warm_up() -> None:
    fleet = one_job(5_000.0, scaling=knobs(warm_up_windows=2))
    pilot = pilot_of(fleet)
    fleet.change_window = learning
    assert [pilot.step(calm).verdict for _ in range(5)] == ["observe"] * 5
    assert "settle" in reason(pilot)
    fleet.change_window = lambda held: held
    assert [pilot.step(calm).verdict for _ in range(3)] == ["observe", "observe", "scale"]


def test_a_job_that_is_settled_may_learn_as_it_likes() -> None:
    """A batch that may be larger than before is no reason to hold a decision back."""
    fleet = one_job(1_000.0, scaling=knobs(warm_up_windows=1))
    pilot = pilot_of(fleet)
    pilot.step(calm), pilot.step(calm)
    fleet.change_window, fleet.rates["a"] = learning, 5_000.0
    assert pilot.step(calm).verdict == "scale" and fleet.threads["x"] == 5


# Waiting for neighbours


def two_jobs(**more: Any) -> Fleet:
    jobs = (
        make_job("up", ["a"], ["b"], scaling=knobs(warm_up_windows=1)),
        make_job("down", ["b"], scaling=knobs(warm_up_windows=4)),
        make_job("other", ["c"], scaling=knobs(warm_up_windows=1)),
    )
    return Fleet(
        make_pipeline(*jobs), {j.name: COST for j in jobs}, {("up", "b"): 1.0}, {"a": 5_000.0, "c": 5_000.0},
        {j.name: 1 for j in jobs}, **more,
    )  # fmt: skip


def test_jobs_joined_by_topics_act_together_and_keep_no_stranger_waiting() -> None:
    fleet = two_jobs()
    pilot = pilot_of(fleet)
    pilot.step(calm), pilot.step(calm)
    assert fleet.threads == {"up": 1, "down": 1, "other": 5}
    assert "waits for a neighbour" in reason(pilot, "up") and "settle" in reason(pilot, "down")
    while fleet.threads["up"] == 1:
        pilot.step(calm)
    assert len(pilot.decisions) == 5 and fleet.threads["down"] == 5


def test_a_neighbour_that_is_never_measured_is_not_waited_for_long() -> None:
    fleet = two_jobs()
    fleet.change_window = lambda held: None if held.job == "down" else held
    pilot = pilot_of(fleet)
    for _ in range(5):
        pilot.step(calm)
    assert fleet.threads["up"] == 5 and fleet.threads["down"] == 1


def test_a_neighbour_that_fell_silent_in_its_warm_up_is_not_waited_for() -> None:
    fleet = two_jobs()
    pilot = pilot_of(fleet)
    pilot.step(calm)
    fleet.change_window = lambda held: None if held.job == "down" else held
    for _ in range(5):
        pilot.step(calm)
    assert fleet.threads["up"] == 5


def test_a_torn_neighbour_keeps_nobody_waiting() -> None:
    fleet = two_jobs()
    fleet.change_window = lambda held: (
        replace(held, overhead_seconds=math.nan) if held.job == "down" else held
    )
    pilot = pilot_of(fleet)
    pilot.step(calm), pilot.step(calm)
    assert fleet.threads["up"] == 5 and "overhead = nan" in pilot.decisions[-1].skipped[0]


# Activation


@pytest.mark.parametrize(("combine", "expected"), [("max", 9), ("median", 5)])
def test_activation_combines_so_many_proposals(combine: str, expected: int) -> None:
    fleet = one_job(5_000.0, scaling=knobs(activation_windows=3, activation=combine))
    pilot = pilot_of(fleet)
    for rate in (5_000.0, 9_000.0, 3_000.0):
        assert fleet.threads["x"] == 1
        fleet.rates["a"] = rate
        pilot.step(calm)
    assert fleet.threads["x"] == expected


def test_proposals_before_an_action_are_forgotten_after_it() -> None:
    fleet = one_job(9_000.0, scaling=knobs(activation_windows=2))
    pilot = pilot_of(fleet)
    pilot.step(calm), pilot.step(calm)
    assert fleet.threads["x"] == 9
    fleet.rates["a"] = 2_000.0
    pilot.step(calm)
    assert fleet.threads["x"] == 9 and "Not enough proposals" in reason(pilot)
    pilot.step(calm)
    assert fleet.threads["x"] == 2


def test_one_jobs_activation_is_not_anothers() -> None:
    jobs = make_job("x", ["a"], scaling=knobs(activation_windows=4)), make_job("y", ["b"])
    fleet = Fleet(
        make_pipeline(*jobs), {"x": COST, "y": COST}, {}, {"a": 5e3, "b": 5e3}, {"x": 1, "y": 1}
    )  # fmt: skip
    pilot = pilot_of(fleet)
    pilot.step(calm)
    assert fleet.threads == {"x": 1, "y": 5}


# Small changes


@pytest.mark.parametrize(
    ("threads", "rate", "after"),
    [(10, 11_000.0, 11), (11, 12_000.0, 11), (11, 13_000.0, 13), (9, 10_000.0, 10)],
)
def test_by_default_one_thread_is_noise_above_ten(threads: int, rate: float, after: int) -> None:
    fleet = one_job(rate, threads, scaling=ScalingKnobs(warm_up_windows=0))
    pilot = pilot_of(fleet)
    pilot.step(calm)
    assert fleet.threads["x"] == after
    assert ("noise" in reason(pilot)) == (after == threads)


def test_min_change_holds_scaling_in_too() -> None:
    fleet = one_job(5_000.0, 8, scaling=knobs(min_change=3))
    pilot_of(fleet).step(calm)
    assert fleet.threads["x"] == 8
    fleet = one_job(4_000.0, 8, scaling=knobs(min_change=3))
    pilot_of(fleet).step(calm)
    assert fleet.threads["x"] == 4


def test_a_small_change_is_made_when_the_backlog_grows() -> None:
    """One thread too few: by itself noise above ten, but not once a backlog trends upwards."""
    fleet = one_job(11_900.0, 11, scaling=ScalingKnobs(warm_up_windows=0))
    pilot = pilot_of(fleet)
    for step in range(5):
        pilot.step(lambda seen, step=step: with_backlog(seen, 1_000.0 * (step + 1)))
    assert fleet.threads["x"] == 12


def with_backlog(seen: Observation, records: float) -> Observation:
    """So many wait, few enough to be always under way."""
    held = seen.windows["x"]
    return replace(seen, windows={"x": replace(held, backlog={"a": records})}, backlog={"x": records})


def test_outside_its_limits_no_change_is_small() -> None:
    fleet = one_job(12_000.0, 13, scaling=knobs(min_change=5), max_threads=12)
    pilot_of(fleet).step(calm)
    assert fleet.threads["x"] == 12


# Room


@pytest.mark.parametrize(("rate", "after"), [(8_000.0, 10), (7_999.0, 10), (7_000.0, 7)])
def test_scaling_in_needs_room(rate: float, after: int) -> None:
    fleet = one_job(rate, 10, scaling=knobs(scale_in_share=0.8))
    pilot = pilot_of(fleet)
    pilot.step(calm)
    assert fleet.threads["x"] == after


# Threads that are lent


def test_what_was_lent_for_a_backlog_is_given_back() -> None:
    fleet = one_job(8_500.0, 9)
    fleet.backlog["x"] = 100_000.0
    pilot = pilot_of(fleet)
    first = pilot.step()
    lent = fleet.threads["x"]
    assert (
        lent > 9 and proposal_of(first, "x").steady == 9 and "only until the backlog is gone" in first.reason
    )
    seen: list[int] = []
    for _ in range(40):
        pilot.step()
        seen.append(fleet.threads["x"])
    assert seen[-1] == 9 and fleet.backlog["x"] < 35_000
    assert sorted(seen, reverse=True) == seen


def test_giving_back_leaves_the_room_that_there_was() -> None:
    fleet = one_job(8_500.0, 10)
    fleet.backlog["x"] = 100_000.0
    pilot = pilot_of(fleet)
    assert pilot.step().actions and fleet.threads["x"] > 10
    pilot.steps(40)
    assert fleet.threads["x"] == 10


def test_nothing_is_taken_back_while_the_backlog_stands() -> None:
    fleet = one_job(8_500.0, 9)
    fleet.backlog["x"] = 100_000.0
    pilot = pilot_of(fleet)
    pilot.step()
    lent = fleet.threads["x"]
    pilot.step()
    assert fleet.backlog["x"] > 34_000 and fleet.threads["x"] == lent
    assert "still being worked off" in reason(pilot)


def test_a_falling_demand_takes_threads_back_though_a_backlog_stands() -> None:
    fleet = one_job(8_500.0, 9)
    fleet.backlog["x"] = 100_000.0
    pilot = pilot_of(fleet)
    pilot.step()
    fleet.rates["a"] = 1_000.0
    pilot.step()
    assert fleet.threads["x"] < 9


# A source that is changing right now


def changing(seen: Observation) -> Observation:
    return replace(calm(seen), changing=frozenset({"a"}))


def test_nobody_scales_in_on_a_rate_that_is_changing_but_not_for_ever() -> None:
    fleet = one_job(5_000.0, 10)
    pilot = pilot_of(fleet)
    for _ in range(MOST_HELD_ROUNDS):
        pilot.step(changing)
        assert fleet.threads["x"] == 10 and "changing right now" in reason(pilot)
    pilot.step(changing)
    assert fleet.threads["x"] == 5


def test_a_rate_that_is_calm_again_is_scaled_in_on_at_once() -> None:
    fleet = one_job(5_000.0, 10)
    pilot = pilot_of(fleet)
    pilot.step(changing), pilot.step(calm)
    assert fleet.threads["x"] == 5


def test_every_scale_in_is_held_anew() -> None:
    """What was held before the last action, or while nothing was to be held, uses up nobody's patience."""
    fleet = one_job(5_000.0, 10)
    pilot = pilot_of(fleet)
    for _ in range(MOST_HELD_ROUNDS + 1):
        pilot.step(changing)
    assert fleet.threads["x"] == 5
    fleet.rates["a"] = 2_000.0
    for _ in range(MOST_HELD_ROUNDS):
        pilot.step(changing)
        assert fleet.threads["x"] == 5
    pilot.step(changing)
    assert fleet.threads["x"] == 2


def test_what_is_stopped_for_another_reason_is_not_held_for_this_one() -> None:
    fleet = one_job(5_000.0, 10, scaling=knobs(activation_windows=3))
    pilot = pilot_of(fleet)
    pilot.step(changing), pilot.step(changing)
    assert "Not enough proposals" in reason(pilot)
    for _ in range(MOST_HELD_ROUNDS):
        pilot.step(changing)
        assert fleet.threads["x"] == 10 and "changing right now" in reason(pilot)


def test_everybody_scales_out_on_a_rate_that_is_changing() -> None:
    fleet = one_job(5_000.0, 1)
    pilot_of(fleet).step(lambda seen: replace(calm(seen), changing=frozenset({"a"})))
    assert fleet.threads["x"] == 5


# The target ratio


def lagging(fleet: Fleet, achieved: float) -> None:
    """Whatever its threads, it takes in this share of what is offered, at a cost that looks fine."""

    def slow(held: JobWindow) -> JobWindow:
        offered = fleet.rates["a"] * held.elapsed_seconds
        share = achieved * offered / held.records_in["a"]
        stages = tuple(
            replace(
                s,
                useful_seconds=s.useful_seconds * share,
                longest_seconds=s.longest_seconds * share,
                records_in=s.records_in * share,
                instances=(),
            )
            for s in held.stages
        )
        grown = {"a": 500.0 * (held.ended_at - START)}
        return replace(held, records_in={"a": achieved * offered}, stages=stages, backlog=grown)

    fleet.change_window = slow


def corrections(pilot: Pilot, rounds: int) -> list[float]:
    return [proposal_of(pilot.step(calm), "x").evidence.target_correction for _ in range(rounds)]


def test_a_target_that_is_not_met_is_corrected_once_the_backlog_grows() -> None:
    fleet = one_job(5_000.0, 5)
    lagging(fleet, 0.8)
    found = corrections(pilot_of(fleet), 4)
    assert found == [1.0, 1.0, 1.0, pytest.approx(1.25)] and fleet.threads["x"] == 7


def test_the_correction_is_replaced_and_never_compounded() -> None:
    fleet = one_job(5_000.0, 5, scaling=knobs(max_ineffective=100))
    lagging(fleet, 0.8)
    found = corrections(pilot_of(fleet), 30)
    assert max(found) == pytest.approx(1.25) and fleet.threads["x"] == 7


def test_the_correction_has_a_most() -> None:
    fleet = one_job(5_000.0, 5)
    lagging(fleet, 0.1)
    assert corrections(pilot_of(fleet), 4)[-1] == pytest.approx(1.5)


def test_the_correction_is_retired_when_the_target_is_another() -> None:
    fleet = one_job(5_000.0, 5)
    lagging(fleet, 0.8)
    pilot = pilot_of(fleet)
    assert corrections(pilot, 4)[-1] > 1
    fleet.rates["a"] = 5_300.0
    assert corrections(pilot, 1)[-1] > 1, "six percent more is the same demand"
    fleet.rates["a"] = 6_000.0
    fleet.change_window = lambda held: held
    assert corrections(pilot, 1) == [1.0]


@pytest.mark.parametrize("achieved", [0.99, 1.0])
def test_a_target_that_is_met_is_not_corrected(achieved: float) -> None:
    fleet = one_job(5_000.0, 5)
    lagging(fleet, achieved)
    assert set(corrections(pilot_of(fleet), 6)) == {1.0}


@pytest.mark.parametrize(("ratio", "corrected"), [(0.98, True), (0.96, True), (0.94, False), (0.5, False)])
def test_the_target_ratio_alone_says_what_counts_as_met(ratio: float, corrected: bool) -> None:
    fleet = one_job(5_000.0, 5, scaling=ScalingKnobs(target_ratio=ratio))
    lagging(fleet, 0.95)
    assert (max(corrections(pilot_of(fleet), 6)) > 1.0) == corrected


def test_skew_is_no_reason_to_correct_the_target() -> None:
    """The busiest of its instances does half again as much as the mean: more threads would not help."""
    fleet = one_job(5_000.0, 5)
    lagging(fleet, 0.8)
    slow = fleet.change_window

    def uneven(held: JobWindow) -> JobWindow | None:
        told = slow(held)
        assert told is not None
        factors = [4.0] + [0.5] * held.threads
        rows = tuple(
            replace(i, useful_seconds=i.useful_seconds * factor)
            for i, factor in zip(held.stages[0].instances, factors, strict=False)
        )
        return replace(told, stages=(replace(told.stages[0], instances=rows),))

    fleet.change_window = uneven
    assert set(corrections(pilot_of(fleet), 6)) == {1.0}


# Cost per Spark task


def test_a_fixed_cost_for_each_spark_task_is_met_after_it_was_seen() -> None:
    """The first answer takes it for a cost per record; the answers after it come closer and then stand."""
    cost = JobCost(0.1, (StageCost(0.001, task_seconds=0.05),))
    fleet = one_job(9_000.0, 1)
    fleet.costs["x"] = cost
    pilot = pilot_of(fleet)
    for _ in range(10):
        pilot.step(calm)
    assert suffices(cost, 9_000.0, fleet.threads["x"])
    assert not any(d.actions for d in pilot.decisions[-3:])


# A window from the future


@pytest.mark.parametrize("name", ["penstock", "ds2"])
def test_a_window_from_the_future_makes_its_job_deaf_to_nothing(name: str) -> None:
    fleet = one_job(1_000.0)
    pilot = Pilot(strategy_named(name), fleet)
    pilot.step(calm)
    fleet.rates["a"] = 5_000.0
    fleet.change_window = lambda held: replace(
        held, started_at=held.started_at + 1e6, ended_at=held.ended_at + 1e6
    )
    decision = pilot.step(calm)
    assert fleet.threads["x"] == 1 and "from now" in decision.skipped[0] and "from now" in reason(pilot)
    fleet.change_window = lambda held: held
    pilot.step(calm)
    assert fleet.threads["x"] == 5
