"""The strategies that others are compared with: Dhalion, Spark's dynamic allocation, and the one that never moves."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fleets import Fleet, Pilot, make_job, make_pipeline, one_stage, proposal_of
from penstock.core.controller.strategy import strategy_named
from penstock.model.jobs import ScalingKnobs
from penstock.model.observations import JobWindow, Observation

COST = one_stage(0.001)
SOON = ScalingKnobs(warm_up_windows=0)
DHALION, ALLOCATION = "dhalion", "spark_dynamic_allocation"
RULED = pytest.mark.parametrize("name", [DHALION, ALLOCATION])


def chain(rate: float, threads: tuple[int, int] = (1, 1), **options: Any) -> Fleet:
    """up hands each record to down; a thread takes in 1,000/s."""
    jobs = (
        make_job("up", ["a"], ["b"], scaling=SOON, **options),
        make_job("down", ["b"], scaling=SOON, **options),
    )
    return Fleet(
        make_pipeline(*jobs), {"up": COST, "down": COST}, {("up", "b"): 1.0}, {"a": rate},
        {"up": threads[0], "down": threads[1]},
    )  # fmt: skip


def pilot(name: str, fleet: Fleet) -> Pilot:
    return Pilot(strategy_named(name), fleet)


# Static


def test_static_never_moves_though_executors_are_short() -> None:
    fleet = chain(9_000.0, (4, 4))
    flown = pilot("static", fleet)
    decision = flown.step(
        lambda seen: replace(seen, executors=1, slots=2, slots_per_executor=2, executors_max=8)
    )
    assert decision.verdict == "hold" and decision.actions == () and fleet.threads == {"up": 4, "down": 4}
    assert all("never changes threads" in p.reason for p in decision.proposals)


# Dhalion


def test_dhalion_scales_the_first_bottleneck_by_its_share_of_backpressure() -> None:
    """5,000/s offered, 1,000/s taken in: 80% backpressure takes 5 threads to ceil(5 x 1.8)."""
    fleet = chain(25_000.0, (5, 5))
    decision = pilot(DHALION, fleet).step()
    assert fleet.threads == {"up": 9, "down": 5}
    assert "80% of the time" in proposal_of(decision, "up").reason


def test_dhalion_at_most_doubles() -> None:
    fleet = chain(1e9, (6, 1))
    pilot(DHALION, fleet).step()
    assert fleet.threads["up"] == 12


def test_dhalion_takes_one_bottleneck_at_a_time_and_ends_above_the_need() -> None:
    fleet = chain(4_000.0)
    flown = pilot(DHALION, fleet)
    flown.steps(60)
    assert all(len(d.actions) <= 1 for d in flown.decisions)
    assert all(t >= 4 for t in fleet.threads.values())
    assert len([d for d in flown.decisions if d.actions]) > 2, "it takes more than one decision"


def test_dhalion_never_scales_in() -> None:
    fleet = chain(100.0, (8, 8))
    pilot(DHALION, fleet).steps(20)
    assert fleet.threads == {"up": 8, "down": 8}


def test_dhalion_waits_for_things_to_settle() -> None:
    fleet = chain(50_000.0)
    fleet.pipeline = make_pipeline(make_job("up", ["a"], scaling=ScalingKnobs(warm_up_windows=2)))
    flown = pilot(DHALION, fleet)
    acted = [bool(flown.step().actions) for _ in range(7)]
    assert acted == [True, False, False, True, False, False, True]


def test_dhalion_blacklists_what_brought_nothing_until_more_is_offered() -> None:
    fleet = chain(10_000.0, (2, 9))

    def stuck(held: JobWindow) -> JobWindow:
        return replace(held, records_in={"a": 10_000.0}) if held.job == "up" else held

    fleet.change_window = stuck
    flown = pilot(DHALION, fleet)
    flown.steps(10)
    once = fleet.threads["up"]
    assert once == 4 and sum(1 for d in flown.decisions if d.actions) == 1
    fleet.rates["a"] = 12_000.0
    flown.step()
    assert fleet.threads["up"] > once


def test_dhalion_turns_to_the_next_when_a_bottleneck_has_all_it_may_have() -> None:
    fleet = chain(4_000.0, (4, 1))
    fleet.pipeline = make_pipeline(
        make_job("up", ["a"], ["b"], scaling=SOON, max_threads=4), make_job("down", ["b"], scaling=SOON)
    )
    fleet.backlog["up"] = 1e9
    flown = pilot(DHALION, fleet)
    decision = flown.step()
    stuck = proposal_of(decision, "up")
    assert stuck.limit == "max_threads" and stuck.proposed == 4 and "most threads" in stuck.reason
    assert fleet.threads["up"] == 4 and fleet.threads["down"] == 2


def test_dhalion_takes_a_queue_that_is_full_for_a_little_backpressure() -> None:
    fleet = chain(900.0, (10, 10))
    fleet.backlog["down"] = 900_000.0
    pilot(DHALION, fleet).step()
    assert fleet.threads == {"up": 10, "down": 11}


# Spark's dynamic allocation


def test_allocation_asks_for_more_and_more_while_work_waits() -> None:
    fleet = chain(1e9, (1, 1))
    flown = pilot(ALLOCATION, fleet)
    sizes = [1]
    for _ in range(5):
        flown.step()
        sizes.append(fleet.threads["up"])
    assert sizes == [1, 2, 4, 8, 16, 32]


def test_allocation_begins_at_one_again_once_nothing_waits() -> None:
    fleet = chain(1e9)
    flown = pilot(ALLOCATION, fleet)
    flown.steps(4)
    fleet.rates["a"], fleet.backlog = 1.0, {}
    flown.step()
    before = fleet.threads["up"]
    fleet.rates["a"] = 1e9
    flown.step()
    assert fleet.threads["up"] == before + 1


def test_allocation_goes_on_from_where_it_was_after_a_round_without_news() -> None:
    """A batch that takes longer than a round tells nothing meanwhile: what waited still waits."""
    fleet = chain(1e9)
    flown = pilot(ALLOCATION, fleet)
    flown.steps(3)
    before = fleet.threads["up"]
    fleet.change_window = lambda held: None
    flown.step()
    assert fleet.threads["up"] == before
    fleet.change_window = lambda held: held
    flown.step()
    assert fleet.threads["up"] == before + 8


def test_allocation_never_scales_in_under_a_steady_load() -> None:
    fleet = chain(10.0, (8, 8))
    pilot(ALLOCATION, fleet).steps(30)
    assert fleet.threads == {"up": 8, "down": 8}


def test_allocation_lets_go_what_was_idle_for_a_minute() -> None:
    fleet = chain(10.0, (8, 8))
    flown = pilot(ALLOCATION, fleet)
    flown.steps(2)
    fleet.change_window = lambda held: None
    fleet.rates["a"] = 0.0
    for step in range(1, 8):
        flown.step()
        assert fleet.threads["up"] == (8 if step < 6 else 1)


def test_allocation_keeps_what_is_idle_while_work_waits() -> None:
    fleet = chain(10.0, (8, 8))
    fleet.change_window = lambda held: None
    flown = pilot(ALLOCATION, fleet)
    for _ in range(9):
        flown.step(lambda seen: replace(seen, backlog={"up": 5.0, "down": 5.0}))
    assert fleet.threads == {"up": 8, "down": 8}


# Both


def _windows(change: Callable[[JobWindow], JobWindow]) -> Callable[[Observation], Observation]:
    return lambda seen: replace(seen, windows={n: change(w) for n, w in seen.windows.items()})


@RULED
@pytest.mark.parametrize("wrong", [math.nan, -5.0, math.inf])
def test_impossible_numbers_set_a_job_aside_and_no_other(name: str, wrong: float) -> None:
    jobs = (make_job("x", ["a"], scaling=SOON), make_job("y", ["b"], scaling=SOON))
    fleet = Fleet(
        make_pipeline(*jobs), {"x": COST, "y": COST}, {}, {"a": 9e3, "b": 9e3}, {"x": 1, "y": 1}
    )  # fmt: skip
    fleet.change_window = lambda held: replace(held, records_in={"a": wrong}) if held.job == "x" else held
    decision = pilot(name, fleet).step()
    assert proposal_of(decision, "x").limit == "set aside" and fleet.threads["x"] == 1
    assert fleet.threads["y"] == 2 and decision.skipped[0].startswith("x: ")


@RULED
def test_unscalable_jobs_are_passed_over(name: str) -> None:
    fleet = chain(1e6, (2, 2), scalable=False)
    decision = pilot(name, fleet).step()
    assert fleet.threads == {"up": 2, "down": 2}
    assert {p.limit for p in decision.proposals} == {"unscalable"}


@RULED
def test_limits_and_slots_are_kept_and_named(name: str) -> None:
    fleet = chain(1e9, (4, 4), max_threads=5)
    flown = pilot(name, fleet)
    flown.steps(8)
    assert max(fleet.threads.values()) <= 5
    asked = [p.limit for d in flown.decisions for p in d.proposals]
    assert "max_threads" in asked
    fleet = chain(1e9, (4, 4))
    flown = pilot(name, fleet)
    decision = flown.step(lambda seen: replace(seen, slots=8))
    assert fleet.threads == {"up": 4, "down": 4} and proposal_of(decision, "up").limit == "slots"


@RULED
def test_executors_follow_threads(name: str) -> None:
    fleet = chain(1e9, (4, 4))
    decision = pilot(name, fleet).step(
        lambda seen: replace(seen, slots=8, executors=2, slots_per_executor=4, executors_max=9)
    )
    total = sum(fleet.threads.values())
    assert [getattr(a, "executors", None) for a in decision.actions][-1] == math.ceil(total / 4)


@RULED
def test_what_is_proposed_is_inside_the_jobs_limits_and_what_is_granted_is_in_the_action(name: str) -> None:
    fleet = chain(1e9, (4, 4), max_threads=7)
    decision = pilot(name, fleet).step(lambda seen: replace(seen, slots=9))
    asked, (action,) = proposal_of(decision, "up"), decision.actions
    assert (asked.proposed, asked.limit) == (
        7 if name == "dhalion" else 5,
        "slots" if name == "dhalion" else "none",
    )
    assert getattr(action, "threads", None) == 5


@RULED
def test_a_window_from_the_future_makes_its_job_deaf_to_nothing(name: str) -> None:
    fleet = chain(1e9, (1, 1))
    flown = pilot(name, fleet)
    fleet.change_window = lambda held: replace(held, ended_at=held.ended_at + 1e6)
    decision = flown.step()
    assert fleet.threads == {"up": 1, "down": 1} and "from now" in decision.skipped[0]
    fleet.change_window = lambda held: held
    flown.step()
    assert fleet.threads["up"] == 2
