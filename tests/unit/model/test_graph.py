"""The job graph: orders, parts, sources, and cycles refused by name."""

from __future__ import annotations

from itertools import permutations

import pytest

from fleets import make_job, make_pipeline
from penstock.model.errors import SpecError
from penstock.model.graph import order_jobs, source_topics, upstream_jobs

DIAMOND = (
    make_job("fan", ["in"], ["l", "r"]),
    make_job("left", ["l"], ["lo"]),
    make_job("right", ["r"], ["ro"]),
    make_job("meet", ["lo", "ro", "side"]),
)


@pytest.mark.parametrize("jobs", list(permutations(DIAMOND)))
def test_every_job_stands_after_all_that_feed_it(jobs: tuple[object, ...]) -> None:
    pipeline = make_pipeline(*jobs)  # type: ignore[arg-type]
    order, above = order_jobs(pipeline), upstream_jobs(pipeline)
    assert sorted(order) == ["fan", "left", "meet", "right"]
    for name, ups in above.items():
        assert all(order.index(up) < order.index(name) for up in ups)


def test_where_it_is_free_the_order_is_the_declarations() -> None:
    jobs = [make_job(name, ["in"]) for name in ("b", "a", "c")]
    assert order_jobs(make_pipeline(*jobs)) == ("b", "a", "c")


def test_a_job_is_upstream_once_whatever_it_writes() -> None:
    pipeline = make_pipeline(make_job("x", ["a"], ["b", "c"]), make_job("y", ["b", "c"]))
    assert upstream_jobs(pipeline) == {"x": (), "y": ("x",)}


def test_sources_are_topics_that_nobody_writes() -> None:
    assert source_topics(make_pipeline(*DIAMOND)) == ("in", "side")


def test_a_cycle_is_refused_naming_its_jobs_and_no_other() -> None:
    jobs = (
        make_job("before", ["in"], ["a"]),
        make_job("one", ["a", "c"], ["b"]),
        make_job("two", ["b"], ["c"]),
        make_job("after", ["c"], ["d"]),
        make_job("last", ["d"]),
    )
    with pytest.raises(SpecError) as caught:
        order_jobs(make_pipeline(*jobs))
    assert "one -> two -> one" in caught.value.problem or "two -> one -> two" in caught.value.problem
    assert not any(name in caught.value.problem for name in ("before", "after", "last"))
    assert "another topic" in caught.value.remedy


def test_a_job_that_feeds_itself_is_a_cycle() -> None:
    with pytest.raises(SpecError, match="loop -> loop"):
        order_jobs(make_pipeline(make_job("loop", ["a"], ["a"])))
