"""DS2's promises for both strategies over random pipelines of jobs that scale linearly (DS2 3.4, 4.2)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleets import Fleet, Pilot, is_least, paper_need, sizes, suffices
from penstock.core.controller.strategy import strategy_named
from penstock.core.sizing.batch_time import JobCost, StageCost
from penstock.model.observations import InstanceColumns, Observation
from strategies import linear_fleets, true_demand

BOTH = pytest.mark.parametrize("name", ["penstock", "ds2"])
pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")


def without_backlog(seen: Observation) -> Observation:
    return replace(seen, backlog=dict.fromkeys(seen.threads, 0.0))


def first_sizes(
    name: str, fleet: Fleet, change: Callable[[Observation], Observation] = lambda seen: seen
) -> dict[str, int]:
    pilot = Pilot(strategy_named(name), copy.deepcopy(fleet))
    return sizes(pilot.step(lambda seen: change(without_backlog(seen))))


def slack(fleet: Fleet, job: str, threads: int, demand: float) -> tuple[int, int]:
    """The paper's need at a demand that rounding moved down or up by a hair."""
    cost = fleet.costs[job]
    return paper_need(cost, demand * (1 - 1e-6)), paper_need(cost, demand * (1 + 1e-6))


@settings(max_examples=120, deadline=None)
@given(linear_fleets())
def test_one_decision_reaches_the_least_sufficient_size(fleet: Fleet) -> None:
    found = first_sizes("penstock", fleet)
    for job, demand in true_demand(fleet).items():
        assert is_least(fleet.costs[job], demand, found[job]), job


@settings(max_examples=120, deadline=None)
@given(linear_fleets())
def test_one_decision_reaches_the_size_of_the_paper(fleet: Fleet) -> None:
    found = first_sizes("ds2", fleet)
    for job, demand in true_demand(fleet).items():
        low, high = slack(fleet, job, found[job], demand)
        assert low <= found[job] <= high, job


def settles(pilot: Pilot, demand: dict[str, float]) -> bool:
    """Whether nothing moves for thirty windows, with no more waiting than always is: a backlog that few
    spare threads work off takes its time."""
    quiet = 0
    for _ in range(1_000):
        quiet = 0 if pilot.step().actions else quiet + 1
        if quiet >= 30 and all(pilot.fleet.backlog[job] <= 1e-6 + 4.1 * rate for job, rate in demand.items()):
            return True
    return False


@settings(max_examples=60, deadline=None)
@given(linear_fleets())
def test_it_stays_where_one_decision_brought_it_and_owes_nothing(fleet: Fleet) -> None:
    """What was lent for the backlog comes back, and then nothing moves any more."""
    demand = true_demand(fleet)
    assert settles(Pilot(strategy_named("penstock"), fleet), demand)
    for job, threads in fleet.threads.items():
        cost, room = fleet.costs[job], max(1, math.ceil(threads * 0.8 - 1e-9))
        assert suffices(cost, demand[job], threads), job
        assert threads == 1 or room == threads or not suffices(cost, demand[job] * (1 - 1e-5), room - 1), job


@BOTH
@settings(max_examples=60, deadline=None)
@given(fleet=linear_fleets(), factor=st.floats(1.0, 8.0), data=st.data())
def test_a_higher_rate_never_takes_fewer_threads(
    name: str, fleet: Fleet, factor: float, data: st.DataObject
) -> None:
    before = first_sizes(name, fleet)
    source = data.draw(st.sampled_from(sorted(fleet.rates)))
    fleet.rates[source] *= factor
    after = first_sizes(name, fleet)
    assert all(after[job] >= before[job] for job in before)


@BOTH
@settings(max_examples=60, deadline=None)
@given(fleet=linear_fleets(), seed=st.integers(0, 1_000))
def test_the_order_of_instances_says_nothing(name: str, fleet: Fleet, seed: int) -> None:
    def shuffled(seen: Observation) -> Observation:
        random = np.random.default_rng(seed)
        windows = {}
        for job, window in seen.windows.items():
            stages = []
            for stage in window.stages:
                rows = [stage.instances[int(i)] for i in random.permutation(len(stage.instances))]
                stages.append(replace(stage, instances=InstanceColumns.of(rows)))
            windows[job] = replace(window, stages=tuple(stages))
        return replace(seen, windows=windows)

    assert first_sizes(name, fleet, shuffled) == first_sizes(name, fleet)


@BOTH
@settings(max_examples=60, deadline=None)
@given(fleet=linear_fleets(), power=st.integers(-6, 6))
def test_ten_times_the_records_at_a_tenth_of_the_cost_is_the_same(
    name: str, fleet: Fleet, power: int
) -> None:
    factor = 2.0**power
    before = first_sizes(name, fleet)
    fleet.rates = {topic: rate * factor for topic, rate in fleet.rates.items()}
    fleet.costs = {
        job: JobCost(cost.overhead_seconds, tuple(StageCost(s.record_seconds / factor) for s in cost.stages))
        for job, cost in fleet.costs.items()
    }
    assert first_sizes(name, fleet) == before


@BOTH
@settings(max_examples=40, deadline=None)
@given(fleet=linear_fleets(), data=st.data())
def test_an_operator_that_is_set_aside_takes_no_other_with_it(
    name: str, fleet: Fleet, data: st.DataObject
) -> None:
    """A torn window of one job: it keeps its threads, and nobody is sized above what it would need."""
    broken = data.draw(st.sampled_from(sorted(fleet.threads)))
    wrong = data.draw(st.sampled_from([float("nan"), float("inf"), -1.0]))
    expected = first_sizes(name, fleet)

    def tear(seen: Observation) -> Observation:
        torn = replace(seen.windows[broken], overhead_seconds=wrong)
        return replace(seen, windows={**seen.windows, broken: torn})

    found = first_sizes(name, fleet, tear)
    assert found[broken] == fleet.threads[broken]
    below = {broken} | set(_below(fleet, broken))
    for job in set(expected) - below:
        assert found[job] == expected[job], job


def _below(fleet: Fleet, start: str) -> set[str]:
    reached = {start}
    for job in fleet.pipeline.jobs:
        written = {t for name in reached for t in fleet.pipeline.job(name).output_topics}
        if written & set(job.input_topics):
            reached.add(job.name)
    return reached - {start}
