"""Production rates carried through the graph: joins, fans, caps, backlogs, and what is not known on the way."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fleets import START, make_job, make_pipeline, one_stage, window
from penstock.core.sizing.demand import Demand, carry_demand, excess_backlog, known_source_rates
from penstock.core.sizing.layout import Layout, lay_out
from penstock.model.observations import Observation

NAN = math.nan
EMPTY = Observation(START, {}, {}, {})
DIAMOND = lay_out(
    make_pipeline(
        make_job("fan", ["in"], ["left", "right"]),
        make_job("l", ["left"], ["l_out"]),
        make_job("r", ["right"], ["r_out"]),
        make_job("meet", ["l_out", "r_out", "side"]),
    )
)
RATIOS = [2.0, 0.5, 1.0, 3.0]
"""fan -> left, fan -> right, l -> l_out, r -> r_out."""


def carry(
    layout: Layout,
    sources: dict[str, float],
    ratios: list[float],
    carried: list[float] | None = None,
    backlog: list[float] | None = None,
    seen: Observation = EMPTY,
) -> Demand:
    most = np.array(carried or [math.inf] * len(layout))
    waiting = None if backlog is None else np.array(backlog)
    return carry_demand(layout, seen, sources, np.array(ratios), most, waiting)


def test_a_diamond_with_a_side_input() -> None:
    found = carry(DIAMOND, {"in": 100.0, "side": 7.0}, RATIOS)
    assert found.target.tolist() == [100.0, 200.0, 50.0, 357.0]
    assert found.full.tolist() == found.target.tolist() and not found.guessed.any()


def test_a_job_hands_on_at_most_what_its_most_threads_carry() -> None:
    found = carry(DIAMOND, {"in": 100.0, "side": 0.0}, RATIOS, [60.0, math.inf, 10.0, math.inf])
    assert found.target.tolist() == [100.0, 120.0, 30.0, 150.0]


def test_an_unknown_selectivity_leaves_what_was_appended_to_speak() -> None:
    appended = {"l_out": 1.0, "r_out": 2.0, "side": 4.0}
    windows = {"meet": window("meet", one_stage(0.001), 10.0, production_rates=appended)}
    seen = replace(EMPTY, windows=windows)
    found = carry(DIAMOND, {"in": 100.0, "side": 0.0}, [2.0, 0.5, NAN, 3.0], seen=seen)
    assert found.target.tolist() == [100.0, 200.0, 50.0, 7.0]
    assert found.guessed.tolist() == [False, False, False, True]


def test_what_nobody_knows_stays_unknown_all_the_way_down() -> None:
    """Caps are no demand: an unknown rate is not the most that a job could carry."""
    found = carry(DIAMOND, {"in": NAN, "side": 5.0}, RATIOS, [1e6] * 4)
    assert np.isnan(found.target).all() and found.guessed.all()


def test_a_job_without_topics_has_no_demand_and_its_readers_have_what_is_appended() -> None:
    layout = lay_out(make_pipeline(make_job("make", [], ["b"]), make_job("take", ["b"])))
    windows = {"take": window("take", one_stage(0.001), 10.0, topic="b", production_rates={"b": 42.0})}
    found = carry(layout, {}, [1.0], [9e9, 9e9], seen=replace(EMPTY, windows=windows))
    assert math.isnan(found.target[0]) and found.target[1] == 42.0


@pytest.mark.parametrize("wrong", [NAN, -1.0, math.inf])
def test_an_impossible_guess_is_none(wrong: float) -> None:
    layout = lay_out(make_pipeline(make_job("x", ["a"])))
    windows = {"x": window("x", one_stage(0.001), 10.0, production_rates={"a": wrong})}
    assert math.isnan(carry(layout, {"a": NAN}, [], seen=replace(EMPTY, windows=windows)).target[0])


def test_the_last_known_source_rate_is_carried() -> None:
    layout = lay_out(make_pipeline(make_job("x", ["a", "b", "c", "d"])))
    seen = replace(EMPTY, source_rates={"a": 5.0, "b": NAN, "c": -2.0})
    before = {"a": 1.0, "b": 2.0, "c": 3.0}
    rates = known_source_rates(layout, seen, before)
    assert {k: rates[k] for k in "abc"} == {"a": 5.0, "b": 2.0, "c": 3.0} and math.isnan(rates["d"])


def test_backlog_that_is_always_under_way_is_no_backlog() -> None:
    """Records wait up to one interval (2 s), then for one batch (L = 2 s): 4 s of demand at any time."""
    layout = lay_out(make_pipeline(make_job("x", ["a"])))
    excess = excess_backlog(layout, np.array([4_000.0]), np.array([1_000.0]))
    assert excess.tolist() == [0.0]
    assert excess_backlog(layout, np.array([4_600.0]), np.array([1_000.0])).tolist() == [600.0]
    assert excess_backlog(layout, np.array([NAN]), np.array([NAN])).tolist() == [0.0]


def test_the_backlogs_share_is_over_the_lag_objective_and_handed_down() -> None:
    layout = lay_out(make_pipeline(make_job("x", ["a"], ["b"]), make_job("y", ["b"])))
    found = carry(layout, {"a": 100.0}, [10.0], backlog=[700.0, 0.0])
    assert found.target.tolist() == [100.0, 1_000.0]
    assert found.excess.tolist() == [300.0, 0.0] and found.backlog_rate.tolist() == [10.0, 0.0]
    assert found.full.tolist() == [110.0, 1_100.0]


def test_without_the_backlog_term_no_backlog_counts() -> None:
    layout = lay_out(make_pipeline(make_job("x", ["a"])))
    found = carry(layout, {"a": 100.0}, [])
    assert found.full.tolist() == [100.0] and found.backlog_rate.tolist() == [0.0]
