"""Plots: round axes, gaps where nothing is known, peaks that thinning keeps, nothing outside the paper."""

from __future__ import annotations

import math
import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.interfaces.report.graph import draw_graph
from penstock.interfaces.report.plot import HEIGHT, WIDTH, Mark, Plot, Series, draw_plot
from penstock.interfaces.report.scales import Point, format_moment, format_tick, thin, time_ticks, value_ticks
from penstock.model.status import RunHeader

NAN = math.nan


def plot(*points: Point, marks: tuple[Mark, ...] = (), end: float = 100.0) -> str:
    return draw_plot(Plot("Lag & co", "s", (Series("a<b", points, "a"),), end, marks, show_labels=True))


@pytest.mark.parametrize(
    ("top", "ticks"),
    [
        (0.0, [0, 1]),
        (NAN, [0, 1]),
        (math.inf, [0, 1]),
        (-5, [0, 1]),
        (10, [0, 2.5, 5, 7.5, 10]),
        (3, [0, 1, 2, 3]),
        (0.7, [0, 0.2, 0.4, 0.6, 0.8]),
    ],
)
def test_values_have_round_ticks(top: float, ticks: list[float]) -> None:
    assert value_ticks(top) == pytest.approx(ticks)


@given(st.floats(1e-6, 1e12))
def test_ticks_reach_the_top_in_few_steps(top: float) -> None:
    ticks = value_ticks(top)
    assert ticks[0] == 0 and ticks[-1] >= top * (1 - 1e-8) and len(ticks) <= 6


@given(st.floats(0.1, 1e8))
def test_moments_are_few_and_inside(end: float) -> None:
    ticks = time_ticks(end)
    assert ticks[0] == 0.0 and ticks[-1] <= end and len(ticks) <= 8


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0:00"), (65.4, "1:05"), (7_210, "2:00:10"), (59.7, "1:00"), (NAN, "-"), (math.inf, "-")],
)
def test_moments(seconds: float, text: str) -> None:
    assert format_moment(seconds) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (2.5, "2.5"), (150, "150"), (12_000, "12k"), (1.5e6, "1.5M"), (2e9, "2G")]
)
def test_ticks_are_short(value: float, text: str) -> None:
    assert format_tick(value) == text


def test_thinning_keeps_every_peak_and_gap() -> None:
    points: list[Point] = [(float(i), 1.0) for i in range(20_000)]
    points[7_777], points[9_999], points[5_000] = (7_777.0, 99.0), (9_999.0, -3.0), (5_000.0, NAN)
    kept = thin(points)
    assert len(kept) < 1_700 and kept[0] == points[0] and kept[-1] == points[-1]
    assert (7_777.0, 99.0) in kept and (9_999.0, -3.0) in kept
    assert thin(points[:100]) == points[:100]


def test_a_plot_is_wellformed_whatever_its_words() -> None:
    drawn = plot((0, 1), (50, 2), marks=(Mark(10, "1 → 5", "<why> & so"),))
    root = ElementTree.fromstring(drawn)
    assert root.findtext("title") == "Lag & co, s" and "a&lt;b" in drawn and "&lt;why&gt;" in drawn


def test_what_is_not_known_is_a_gap() -> None:
    path = re.search(r'<path d="([^"]*)" class="line', plot((0, 1), (10, 1), (20, NAN), (30, 1), (40, 1)))
    assert path is not None and path.group(1).count("M") == 2
    assert 'class="line a"' in plot((0, NAN)), "the legend is there though no line is"
    assert "<path" not in plot((0, NAN))


@given(
    st.lists(
        st.tuples(st.floats(-50, 500), st.floats(-1e12, 1e12) | st.sampled_from([NAN, math.inf, -math.inf])),
        max_size=30,
    )
)
def test_no_line_leaves_the_paper(points: list[Point]) -> None:
    drawn = plot(*sorted(points, key=lambda p: p[0]))
    assert "nan" not in drawn and "inf" not in drawn
    for path in re.findall(r' d="([^"]*)"', drawn):
        for x, y in re.findall(r"[ML]([\d.-]+) ([\d.-]+)", path):
            assert 0 <= float(x) <= WIDTH and 0 <= float(y) <= HEIGHT


def test_what_is_cut_at_the_top_is_said() -> None:
    tall = Series("capacity", ((0, 1_000.0), (9, 1_000.0)), "c", sets_scale=False)
    low = Series("in", ((0, 10.0), (9, 10.0)), "a")
    assert "(capacity cut at the top)" in draw_plot(Plot("Rates", "1/s", (tall, low), 9.0))
    assert "cut at the top" not in draw_plot(Plot("Rates", "1/s", (tall,), 9.0))


def test_labels_do_not_run_into_each_other() -> None:
    marks = tuple(Mark(float(i), f"{i} → {i + 1}", "why") for i in range(50))
    assert 0 < plot((0, 1), marks=marks).count('class="label') < 10


def test_a_graph_has_a_node_for_each_topic_and_job() -> None:
    edges = (("", "in", "a"), ("a", "mid", "b"), ("", "side", "b"), ("b", "out", ""))
    header = RunHeader("r1", "p", "p.py", "embedded", "penstock", 0.0, ("a", "b"), edges)
    root = ElementTree.fromstring(draw_graph(header, {"a": "1 → 5 threads"}))
    names = [t.text for t in root.iter("text")]
    assert sorted(n for n in names if n) == ["1 → 5 threads", "a", "b", "in", "mid", "out", "side"]
    assert len([p for p in root.iter("path") if p.get("class") == "wire"]) == 5


def test_no_edges_draw_no_graph() -> None:
    assert draw_graph(RunHeader("r1", "p", "p.py", "e", "s", 0.0, ("a",)), {}) == ""


def test_a_graph_that_loops_is_drawn() -> None:
    edges = (("a", "x", "b"), ("b", "y", "a"))
    assert draw_graph(RunHeader("r1", "p", "p.py", "e", "s", 0.0, ("a", "b"), edges), {}).startswith("<svg")
