"""A pipeline as columns: order, edges, components, bounds, objectives, and every knob at its place."""

from __future__ import annotations

from typing import Any

import pytest

from fleets import make_job, make_pipeline
from penstock.core.sizing.layout import lay_out
from penstock.model.errors import SpecError
from penstock.model.jobs import ScalingKnobs


def test_jobs_stand_after_all_that_feed_them_whatever_the_declaration() -> None:
    layout = lay_out(make_pipeline(make_job("c", ["b"]), make_job("b", ["a"], ["b"]), make_job("d", ["x"])))
    assert layout.names.index("b") < layout.names.index("c") and len(layout) == 3
    assert [layout.names[layout.index[n]] for n in layout.names] == list(layout.names)


def test_topics_edges_and_sources_are_numbered() -> None:
    layout = lay_out(make_pipeline(make_job("x", ["a", "b"], ["c", "d"]), make_job("y", ["c"])))
    assert [name for _, name in layout.sources] == ["a", "b"]
    assert layout.edges == ((0, "c"), (0, "d"))
    assert [layout.topics[t] for t in layout.reads[0]] == ["a", "b"]
    assert [(layout.topics[t], e) for t, e in layout.writes[0]] == [("c", 0), ("d", 1)]


def test_jobs_joined_by_topics_are_one_component() -> None:
    layout = lay_out(
        make_pipeline(
            make_job("a", ["in"], ["m"]),
            make_job("b", ["m"]),
            make_job("far", ["z"]),
            make_job("near", ["in"]),
        )
    )
    of = {name: int(layout.component[i]) for i, name in enumerate(layout.names)}
    assert of["a"] == of["b"] == of["near"] != of["far"]


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        ({}, (1, 1024, False)),
        ({"min_threads": 3, "max_threads": 9}, (3, 9, False)),
        ({"tasks": 4}, (4, 1024, False)),
        ({"tasks": 4, "max_threads": 2}, (2, 2, False)),
        ({"ordered": True}, (1, 8, True)),
        ({"ordered": True, "max_threads": 5}, (1, 5, False)),
        ({"ordered": True, "min_threads": 20}, (8, 8, True)),
    ],
)
def test_bounds(options: dict[str, Any], bounds: tuple[int, int, bool]) -> None:
    layout = lay_out(make_pipeline(make_job("x", ["a"], **options)))
    assert (int(layout.least[0]), int(layout.most[0]), bool(layout.most_by_partitions[0])) == bounds


def test_the_partitions_of_all_inputs_bound_an_ordered_job() -> None:
    layout = lay_out(make_pipeline(make_job("x", ["a", "b"], ordered=True), partitions=3))
    assert int(layout.most[0]) == 6


@pytest.mark.parametrize(
    ("interval", "slo", "objective", "feasible"),
    [(2.0, 30.0, 2.0, True), (2.0, 3.0, 1.0, True), (2.0, 2.0, 2.0, False), (5.0, 1.0, 5.0, False)],
)
def test_objectives(interval: float, slo: float, objective: float, feasible: bool) -> None:
    """L = min(I, S - I); where that leaves nothing, the interval."""
    layout = lay_out(make_pipeline(make_job("x", ["a"], interval_seconds=interval, slo_lag_seconds=slo)))
    assert (float(layout.objective[0]), bool(layout.feasible[0])) == (objective, feasible)


def test_every_knob_is_where_it_belongs() -> None:
    knobs = ScalingKnobs(
        policy_interval_seconds=7.0, warm_up_windows=5, activation_windows=6, activation="median", min_change=4,
        max_ineffective=8, target_ratio=0.9, roll_back_loss=0.3, scale_in_share=0.6,
    )  # fmt: skip
    job = make_job("x", ["a"], scaling=knobs, priority=11, scalable=False, tasks=2, slo_lag_seconds=20.0)
    held = lay_out(make_pipeline(job, make_job("y", ["b"], scaling=ScalingKnobs())))
    columns = (
        held.policy_interval, held.warm_up, held.activation, held.activation_median, held.min_change,
        held.max_ineffective, held.target_ratio, held.roll_back_loss, held.scale_in_share, held.priority,
        held.scalable, held.tasks, held.slo_lag,
    )  # fmt: skip
    assert [c.tolist()[0] for c in columns] == [7.0, 5, 6, True, 4, 8, 0.9, 0.3, 0.6, 11, False, 2, 20.0]
    assert [c.tolist()[1] for c in columns] == [10.0, 3, 1, False, -1, 3, 0.98, 0.1, 0.8, 0, True, 1, 30.0]


def test_a_job_that_feeds_itself_is_a_cycle() -> None:
    with pytest.raises(SpecError, match="x -> x"):
        lay_out(make_pipeline(make_job("x", ["a"], ["a"])))
