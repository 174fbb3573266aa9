"""The controller over whole pipelines: shapes of graphs, numbers that are missing, jobs that can't grow."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fleets import (
    QUICK,
    START,
    Fleet,
    Pilot,
    is_least,
    make_job,
    make_pipeline,
    one_stage,
    paper_need,
    proposal_of,
    sizes,
    window,
)
from penstock.core.controller.strategy import STRATEGIES, strategy_named
from penstock.core.sizing.batch_time import JobCost, StageCost
from penstock.model.decisions import ScaleExecutors, ScaleThreads
from penstock.model.errors import SpecError
from penstock.model.jobs import Input, JobSpec, Output, PipelineSpec, SourceSpec
from penstock.model.observations import JobWindow, Observation

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")
SIZERS = pytest.mark.parametrize("name", ["penstock", "ds2"])
CHEAP = one_stage(0.001, 0.1)


def fleet_of(*jobs: JobSpec, rates: dict[str, float], **more: Any) -> Fleet:
    ratios = {(j.name, t): 1.0 for j in jobs for t in j.output_topics}
    fields: dict[str, Any] = {
        "costs": {j.name: CHEAP for j in jobs},
        "ratios": ratios,
        "threads": {j.name: 1 for j in jobs},
        **more,
    }
    return Fleet(pipeline=make_pipeline(*jobs), rates=rates, **fields)


def decide_once(
    name: str, fleet: Fleet, change: Callable[[Observation], Observation] = lambda seen: seen
) -> dict[str, int]:
    def alone(seen: Observation) -> Observation:
        return change(replace(seen, backlog=dict.fromkeys(seen.threads, 0.0)))

    return sizes(Pilot(strategy_named(name), fleet).step(alone))


def expected(name: str, cost: JobCost, demand: float, threads: int) -> bool:
    return is_least(cost, demand, threads) if name == "penstock" else threads == paper_need(cost, demand)


# Shapes


@SIZERS
def test_a_chain_is_sized_in_one_traversal(name: str) -> None:
    """Word count: 1,440 sentences/s of 20 words at 155/s and 1,550/s a thread."""
    fleet = fleet_of(
        make_job("split", ["sentences"], ["words"]),
        make_job("count", ["words"], ["counts"]),
        rates={"sentences": 1440.0},
        costs={"split": one_stage(1 / 155, 0.1), "count": one_stage(1 / 1550, 0.1)},
        ratios={("split", "words"): 20.0, ("count", "counts"): 1.0},
    )
    found = decide_once(name, fleet)
    assert found == ({"split": 10, "count": 20} if name == "penstock" else {"split": 10, "count": 19})


@SIZERS
def test_a_join_takes_in_both_of_its_inputs(name: str) -> None:
    fleet = fleet_of(make_job("join", ["a", "b"], ["out"]), rates={"a": 4_000.0, "b": 900.0})
    assert expected(name, CHEAP, 4_900.0, decide_once(name, fleet)["join"])


@SIZERS
def test_a_diamond_counts_each_branch(name: str) -> None:
    fleet = fleet_of(
        make_job("fan", ["in"], ["left", "right"]),
        make_job("l", ["left"], ["l_out"]),
        make_job("r", ["right"], ["r_out"]),
        make_job("meet", ["l_out", "r_out"]),
        rates={"in": 3_000.0},
        ratios={("fan", "left"): 2.0, ("fan", "right"): 0.5, ("l", "l_out"): 1.0, ("r", "r_out"): 3.0},
    )
    found = decide_once(name, fleet)
    for job, demand in (("fan", 3_000.0), ("l", 6_000.0), ("r", 1_500.0), ("meet", 10_500.0)):
        assert expected(name, CHEAP, demand, found[job]), job


@SIZERS
def test_several_writers_of_one_topic_add_up(name: str) -> None:
    fleet = fleet_of(
        make_job("x", ["a"], ["both"]),
        make_job("y", ["b"], ["both"]),
        make_job("z", ["both"]),
        rates={"a": 2_000.0, "b": 5_000.0},
    )
    assert expected(name, CHEAP, 7_000.0, decide_once(name, fleet)["z"])


@SIZERS
def test_disconnected_parts_are_sized_by_themselves(name: str) -> None:
    fleet = fleet_of(make_job("x", ["a"]), make_job("y", ["b"]), rates={"a": 2_000.0, "b": 9_000.0})
    found = decide_once(name, fleet)
    assert expected(name, CHEAP, 2_000.0, found["x"]) and expected(name, CHEAP, 9_000.0, found["y"])


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_cycle_is_refused_naming_its_operators(name: str) -> None:
    pipeline = make_pipeline(
        make_job("head", ["in", "back"], ["a"]), make_job("tail", ["a"], ["back"]), make_job("out", ["a"])
    )
    with pytest.raises(SpecError, match=r"head -> tail -> head|tail -> head -> tail") as caught:
        strategy_named(name).start(pipeline)
    assert "out" not in caught.value.problem and caught.value.remedy


def test_an_unknown_strategy_lists_those_there_are() -> None:
    with pytest.raises(SpecError, match="choose one of penstock, ds2, dhalion"):
        strategy_named("guess")


# Rates that are low, absent or impossible


@SIZERS
def test_rates_below_one_a_second_are_rates(name: str) -> None:
    slow = one_stage(40.0, 0.1)
    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 0.2}, costs={"x": slow})
    assert expected(name, slow, 0.2, decide_once(name, fleet)["x"])
    assert decide_once(name, fleet_of(make_job("x", ["a"]), rates={"a": 0.001}))["x"] == 1


@SIZERS
def test_an_idle_operator_keeps_one_thread(name: str) -> None:
    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 0.0}, threads={"x": 6})
    pilot = Pilot(strategy_named(name), fleet)
    pilot.steps(3)
    assert fleet.threads["x"] == 1


@SIZERS
def test_what_was_known_before_idleness_is_used_after_it(name: str) -> None:
    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 5_000.0}, threads={"x": 5})
    pilot = Pilot(strategy_named(name), fleet)
    pilot.steps(2)
    fleet.rates["a"] = 0.0
    pilot.steps(3)
    assert fleet.threads["x"] == 1
    fleet.rates["a"] = 5_000.0
    fleet.change_window = lambda seen: None
    decision = pilot.step(lambda seen: replace(seen, backlog={"x": 0.0}))
    assert expected(name, CHEAP, 5_000.0, fleet.threads["x"])
    assert proposal_of(decision, "x").evidence.window_age_seconds >= 30


@SIZERS
def test_no_useful_time_leaves_rates_undefined_and_the_job_aside(name: str) -> None:
    def without_useful_time(held: JobWindow) -> JobWindow:
        return replace(held, stages=tuple(replace(s, useful_seconds=0.0, instances=()) for s in held.stages))

    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 5_000.0}, threads={"x": 3})
    fleet.change_window = without_useful_time
    decision = Pilot(strategy_named(name), fleet).step()
    held = proposal_of(decision, "x")
    assert (held.proposed, held.limit, decision.verdict) == (3, "set aside", "observe")
    assert math.isnan(held.evidence.true_rate) and "rates are undefined" in held.reason


@SIZERS
@pytest.mark.parametrize("wrong", [math.nan, -1.0, math.inf])
@pytest.mark.parametrize("field", ["overhead_seconds", "batches", "useful", "records"])
def test_an_impossible_number_sets_its_job_aside_and_no_other(name: str, wrong: float, field: str) -> None:
    def tear(held: JobWindow) -> JobWindow:
        if held.job != "x":
            return held
        if field == "useful":
            return replace(held, stages=(replace(held.stages[0], useful_seconds=wrong),))
        if field == "records":
            return replace(held, records_in={"a": wrong})
        return replace(held, **{field: wrong})

    fleet = fleet_of(make_job("x", ["a"]), make_job("y", ["b"]), rates={"a": 5_000.0, "b": 5_000.0})
    fleet.change_window = tear
    decision = Pilot(strategy_named(name), fleet).step(lambda s: replace(s, backlog={"x": 0.0, "y": 0.0}))
    aside, other = proposal_of(decision, "x"), proposal_of(decision, "y")
    assert (aside.proposed, aside.limit) == (1, "set aside")
    assert expected(name, CHEAP, 5_000.0, other.proposed) and other.limit == "none"
    assert any(text.startswith("x: ") and "=" in text for text in decision.skipped)


@SIZERS
def test_a_torn_instance_sets_its_job_aside(name: str) -> None:
    def tear(held: JobWindow) -> JobWindow:
        row = replace(held.stages[0].instances[0], useful_seconds=math.nan)
        return replace(held, stages=(replace(held.stages[0], instances=(row,)),))

    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 5_000.0})
    fleet.change_window = tear
    assert "instances" in Pilot(strategy_named(name), fleet).step().skipped[0]


@SIZERS
def test_a_missing_instance_changes_little(name: str) -> None:
    """Four threads, one of which told nothing: rates are of those that did."""

    def drop_one(held: JobWindow) -> JobWindow:
        stage = held.stages[0]
        kept = tuple(stage.instances)[:3]
        useful = sum(i.useful_seconds for i in kept)
        records = sum(i.records_in for i in kept)
        stage = replace(stage, instances=kept, useful_seconds=useful, records_in=records)
        return replace(held, stages=(stage,), records_in={"a": records})

    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 8_000.0}, threads={"x": 4})
    fleet.change_window = drop_one
    assert expected(name, CHEAP, 8_000.0, decide_once(name, fleet)["x"])


@SIZERS
def test_the_last_known_rate_of_a_source_stands_in_for_a_missing_one(name: str) -> None:
    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 4_900.0}, costs={"x": one_stage(0.001)})
    pilot = Pilot(strategy_named(name), fleet)
    pilot.steps(8)
    settled = fleet.threads["x"]
    for wrong in (math.nan, -5.0, math.inf):
        pilot.step(lambda seen, wrong=wrong: replace(seen, source_rates={"a": wrong}))
    pilot.step(lambda seen: replace(seen, source_rates={}))
    assert fleet.threads["x"] == settled


@SIZERS
def test_a_rate_that_is_not_known_is_not_made_up_downstream(name: str) -> None:
    """Nothing is known of the source, and no window came: who reads of its reader is set aside, not sized for its peak."""
    fleet = fleet_of(make_job("x", ["a"], ["b"]), make_job("y", ["b"]), rates={"a": 500.0})
    pilot = Pilot(strategy_named(name), fleet)
    pilot.step(lambda seen: replace(seen, source_rates={}))
    fleet.change_window = lambda seen: None
    decision = pilot.step(lambda seen: replace(seen, source_rates={}))
    assert sizes(decision) == {"x": 1, "y": 1}
    assert {p.limit for p in decision.proposals} == {"set aside"}


@SIZERS
def test_who_reads_of_a_job_without_topics_is_sized_by_what_is_appended(name: str) -> None:
    """A job that reads a Spark source has no rate that could be carried on; its output's production has."""
    maker = make_job("make", [], ["b"])
    maker = maker.model_copy(update={"inputs": (Input(source=SourceSpec(format="rate")),)})
    taker = make_job("take", ["b"])
    pipeline = make_pipeline(maker, taker)
    windows = {
        "make": window("make", CHEAP, 30_000.0, topic="rate", out={"b": 30_000.0}),
        "take": window("take", CHEAP, 8_000.0, topic="b", production_rates={"b": 3_000.0}),
    }
    strategy = strategy_named(name)
    seen = Observation(START + 10, windows, {"make": 1, "take": 1}, {}, backlog={"make": 0.0, "take": 0.0})
    _, decision = strategy.decide(strategy.start(pipeline), seen, START + 10)
    assert proposal_of(decision, "make").limit == "set aside"
    assert expected(name, CHEAP, 3_000.0, sizes(decision)["take"])


@SIZERS
def test_unknown_threads_set_a_job_aside(name: str) -> None:
    fleet = fleet_of(make_job("x", ["a"]), make_job("y", ["b"]), rates={"a": 5_000.0, "b": 5_000.0})
    found = decide_once(name, fleet, lambda seen: replace(seen, threads={"y": 1}))
    assert found["x"] == 1 and expected(name, CHEAP, 5_000.0, found["y"])


# Jobs that can't grow


@SIZERS
def test_unscalable_jobs_are_passed_over(name: str) -> None:
    fleet = fleet_of(
        make_job("x", ["a"], ["b"], scalable=False), make_job("y", ["b"]), rates={"a": 500.0}, threads={"x": 2, "y": 1}
    )  # fmt: skip
    decision = Pilot(strategy_named(name), fleet).step()
    assert proposal_of(decision, "x").limit == "unscalable" and sizes(decision)["x"] == 2


@SIZERS
def test_a_job_that_cannot_grow_limits_what_its_readers_are_offered(name: str) -> None:
    """1,000/s a thread at most (x is held at one): y need not be sized for the 50,000/s that are produced."""
    fleet = fleet_of(make_job("x", ["a"], ["b"], max_threads=1), make_job("y", ["b"]), rates={"a": 50_000.0})
    found = decide_once(name, fleet)
    assert found["x"] == 1 and found["y"] <= 2


@SIZERS
@pytest.mark.parametrize(
    ("options", "limit", "threads"),
    [({"max_threads": 3}, "max_threads", 3), ({"min_threads": 30}, "min_threads", 30), ({"ordered": True}, "partitions", 8)],
)  # fmt: skip
def test_limits_are_kept_and_named(name: str, options: dict[str, Any], limit: str, threads: int) -> None:
    fleet = fleet_of(make_job("x", ["a"], **options), rates={"a": 12_000.0})
    pilot = Pilot(strategy_named(name), fleet)
    held = proposal_of(pilot.step(), "x")
    assert (held.limit, held.proposed, fleet.threads["x"]) == (limit, threads, threads)


def test_a_stage_with_a_ceiling_is_named_and_sized_for_the_rest() -> None:
    cost = JobCost(0.1, (StageCost(0.0005), StageCost(0.002, ceiling=8)))
    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 6_000.0}, costs={"x": cost})
    held = proposal_of(Pilot(strategy_named("penstock"), fleet).step(), "x")
    assert held.limit in ("state partitions", "hot unit") and held.proposed >= 8


@pytest.mark.parametrize(("interval", "slo"), [(2.0, 1.5), (2.0, 2.05)])
def test_a_lag_objective_that_leaves_no_room_is_said(interval: float, slo: float) -> None:
    job = make_job("x", ["a"], interval_seconds=interval, slo_lag_seconds=slo)
    fleet = fleet_of(job, rates={"a": 5_000.0})
    windows = {"x": window("x", CHEAP, 5_000.0, topic="a")}
    strategy = strategy_named("penstock")
    seen = Observation(START + 10, windows, {"x": 1}, {"a": 5_000.0}, backlog={"x": 0.0})
    _, decision = strategy.decide(strategy.start(fleet.pipeline), seen, START + 10)
    held = proposal_of(decision, "x")
    assert held.limit == "infeasible interval" and "shorter interval" in held.reason
    assert is_least(CHEAP, 5_000.0, held.proposed, interval)


# Room


def test_stages_that_share_slots_add_up() -> None:
    """Two stages of 1 ms and 3 ms a record run one after another: 4 ms, not 3."""
    cost = JobCost(0.0, (StageCost(0.001), StageCost(0.003)))
    for name in ("penstock", "ds2"):
        fleet = fleet_of(make_job("x", ["a"]), rates={"a": 1_000.0}, costs={"x": cost})
        assert decide_once(name, fleet)["x"] == 4


def test_scaling_in_needs_room_but_the_paper_needs_none() -> None:
    for name, threads in (("penstock", 10), ("ds2", 9)):
        cost = one_stage(0.001, 0.0)
        fleet = fleet_of(make_job("x", ["a"]), rates={"a": 8_900.0}, costs={"x": cost}, threads={"x": 10})
        pilot = Pilot(strategy_named(name), fleet)
        pilot.step()
        assert fleet.threads["x"] == threads
    fleet.rates["a"] = 5_000.0
    pilot.step()
    assert fleet.threads["x"] == 5


def test_the_fewest_slots_are_shared_and_said() -> None:
    fleet = fleet_of(
        make_job("x", ["a"], priority=1), make_job("y", ["b"]), rates={"a": 5_000.0, "b": 5_000.0}, slots=8
    )
    decision = Pilot(strategy_named("penstock"), fleet).step(
        lambda seen: replace(seen, backlog={"x": 0.0, "y": 0.0})
    )
    assert sum(fleet.threads.values()) == 8 and fleet.threads["x"] == 6
    assert proposal_of(decision, "y").limit == "slots"
    assert proposal_of(decision, "y").proposed == 6, "what it asks for; what it gets is in the action"
    again = Pilot(strategy_named("penstock"), fleet).step(lambda s: replace(s, backlog={"x": 0.0, "y": 0.0}))
    assert not again.actions and "y" in again.reason and "slots" in again.reason


def test_executors_come_with_threads_and_go_with_them() -> None:
    def elastic(seen: Observation) -> Observation:
        return replace(seen, executors=1, slots=4, slots_per_executor=4, executors_max=5, backlog={"x": 0.0})

    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 8_900.0}, threads={"x": 4})
    decision = Pilot(strategy_named("penstock"), fleet).step(elastic)
    threads, executors = decision.actions
    assert isinstance(threads, ScaleThreads) and isinstance(executors, ScaleExecutors)
    assert executors.executors == math.ceil(threads.threads / 4)


# A decision holds what led to it


def test_every_action_carries_the_id_of_its_decision() -> None:
    fleet = fleet_of(make_job("x", ["a"]), rates={"a": 5_000.0})
    pilot = Pilot(strategy_named("penstock"), fleet)
    ids = [pilot.step().id for _ in range(3)]
    assert len(set(ids)) == 3 and {a.cause for a in pilot.decisions[0].actions} == {ids[0]}


def test_a_window_that_comes_again_is_no_news() -> None:
    fleet = fleet_of(
        make_job("x", ["a"], scaling=QUICK.model_copy(update={"warm_up_windows": 3})), rates={"a": 9.0}
    )
    seen = fleet.look()
    strategy = strategy_named("penstock")
    state: Any = strategy.start(fleet.pipeline)
    for _ in range(6):
        state, decision = strategy.decide(state, seen, fleet.now)
        assert decision.verdict == "observe"


def test_an_observation_without_anything_is_borne() -> None:
    for name in STRATEGIES:
        strategy = strategy_named(name)
        state = strategy.start(make_pipeline(make_job("x", ["a"])))
        state, decision = strategy.decide(state, Observation(START, {}, {}, {}), START)
        assert not decision.actions and len(decision.proposals) == 1


def test_a_pipeline_without_jobs_is_borne() -> None:
    empty = PipelineSpec(name="none", topics=(), jobs=())
    for name in STRATEGIES:
        strategy = strategy_named(name)
        _, decision = strategy.decide(strategy.start(empty), Observation(START, {}, {}, {}), START)
        assert not decision.actions and len(decision.proposals) == 0


def test_outputs_to_sinks_carry_nothing_on() -> None:
    job = make_job("x", ["a"]).model_copy(update={"outputs": (Output(topic="b"),)})
    fleet = fleet_of(job, make_job("y", ["b"]), rates={"a": 3_000.0}, ratios={("x", "b"): 0.0})
    found = decide_once("penstock", fleet)
    assert found["y"] == 1 and is_least(CHEAP, 3_000.0, found["x"])
