"""Load: how many records are due when, that a stall is caught up with, and what the records are."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from penstock.control.load import APPEND_MOST, Load, Schedule, plan_constant, read_schedule
from penstock.control.load_records import (
    Lines,
    Sentences,
    Template,
    make_by_columns,
    make_sentences,
    make_texts,
)
from penstock.model.errors import SpecError
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange, Record
from penstock.model.topics import TopicSpec


class Taken:
    """What was appended: the one thing of topics that a load uses."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(
        self, topic: str, records: Iterable[Record], partition: int | None = None
    ) -> Mapping[TopicPartition, OffsetRange]:
        self.records.extend(records)
        return {}


RATES = st.floats(0, 5000, allow_nan=False)
GAPS = st.floats(0.01, 100, allow_nan=False)


@st.composite
def schedules(draw: st.DrawFn) -> Schedule:
    points, at = [(0.0, draw(RATES))], 0.0
    for gap, rate in draw(st.lists(st.tuples(GAPS, RATES), max_size=4)):
        at += gap
        points.append((at, rate))
    end = draw(st.just(math.inf) | st.floats(0.1, 500))
    return Schedule(tuple(points), draw(st.sampled_from(["step", "linear"])), end)


@given(schedules(), st.floats(0, 600), st.floats(0, 600))
def test_records_due_grow_with_time_and_equal_the_area_under_the_rate(
    s: Schedule, a: float, b: float
) -> None:
    a, b = min(a, b), max(a, b)
    due = s.records_by(b) - s.records_by(a)
    edges: list[float] = sorted({a, b, *(t for t in (*dict(s.points), s.end_seconds) if a < t < b)})
    area = sum(
        (right - left)
        * (s.rate_at(left + (right - left) * 0.25) + s.rate_at(left + (right - left) * 0.75))
        / 2
        for left, right in pairwise(edges)
    )
    assert due == pytest.approx(area, rel=1e-6, abs=1e-5)
    assert due >= -1e-6


@given(schedules(), st.integers(1, 100_000))
def test_the_time_of_a_record_is_when_it_is_due(s: Schedule, n: int) -> None:
    at = s.time_of(n)
    assume(math.isfinite(at) and s.rate_at(max(0.0, at - 1e-9)) > 1e-3)
    assert s.records_by(at) == pytest.approx(n, rel=1e-6, abs=1e-3)


@settings(deadline=None, max_examples=50)
@given(st.floats(0.01, 2_000), st.floats(0.5, 20), st.lists(st.floats(0.0, 20.0), max_size=10))
def test_the_total_is_exact_whatever_the_stalls(rate: float, seconds: float, stalls: list[float]) -> None:
    taken, now, stalling = Taken(), 1000.0, list(stalls)
    topics: Any = taken
    schedule = plan_constant(rate, seconds)
    load = Load(topics, "t", schedule, make_texts(Lines(["x"], "f"), None), now)
    steps = 0
    while (wake := load.step(now)) is not None:
        assert wake >= now
        assert load.sent <= schedule.records_by(now - 1000.0) + 1e-3
        now = wake + (stalling.pop() if stalling else 0.0)
        steps += 1
    assert len(taken.records) == load.sent == math.floor(rate * seconds + 1e-6)
    assert steps <= 10 * seconds + len(stalls) + load.sent / APPEND_MOST * 2 + 12


def test_after_a_stall_a_step_appends_a_bounded_part_and_wakes_at_once() -> None:
    taken = Taken()
    topics: Any = taken
    load = Load(topics, "t", plan_constant(100_000.0), make_texts(Lines(["x"], "f"), None), 0.0)
    assert load.step(1.0) == 1.0
    assert len(taken.records) == APPEND_MOST
    assert load.behind_most_seconds == pytest.approx(1.0, rel=0.01)


def test_a_profile_is_read_as_steps_or_as_lines() -> None:
    text = "seconds,rate\n# warm\n0,100\n1m,300/s\n\n120,6k/m\n"
    step = read_schedule(text, "step", "p.csv")
    assert [step.rate_at(t) for t in (0, 59, 60, 119, 120, 9999)] == [100, 100, 300, 300, 100, 100]
    linear = read_schedule(text, "linear", "p.csv")
    assert [linear.rate_at(t) for t in (0, 30, 60, 90, 200)] == [100, 200, 300, 200, 100]
    assert linear.records_by(60) == pytest.approx(12_000)


def test_a_last_rate_of_zero_ends_a_profile() -> None:
    assert read_schedule("0,10\n5,0", "step", "p.csv").end_seconds == 5
    assert read_schedule("0,10\n5,0", "step", "p.csv", 3).records_by(99) == 30
    assert read_schedule("5,10", "step", "p.csv").records_by(6) == 10


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("", "p.csv", "--rates = 'p.csv' has no rows"),
        ("seconds,rate\n", "p.csv", "--rates = 'p.csv' has no rows"),
        ("0,100\n10", "p.csv:2", "--rates = '10' is not seconds,rate"),
        ("0,fast", "p.csv:1", "100/s"),
        ("0,-5", "p.csv:1", "100/s"),
        ("soon,5", "p.csv:1", "30s"),
        ("0,nan", "p.csv:1", "100/s"),
        ("0,5\n10,6\n10,7", "p.csv:3", "ascend"),
    ],
)
def test_a_profile_that_cannot_be_used_is_said_with_its_line(text: str, place: str, what: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_schedule(text, "step", "p.csv")
    assert caught.value.place == place and what in str(caught.value)


def topic(columns: str, **more: Any) -> TopicSpec:
    return TopicSpec(name="t", columns=columns, **more)


def test_records_depend_on_the_seed_alone() -> None:
    spec = topic("product string, price double, n int, at timestamp, ok boolean", key="product")
    first, again, other = (make_by_columns(seed, spec).take(50, 1_700_000_000_000) for seed in (1, 1, 2))
    assert first == again != other
    row = json.loads(first[0].value or b"")
    assert list(row) == ["product", "price", "n", "at", "ok"]
    assert first[0].key == row["product"].encode()
    assert row["at"] == "2023-11-14T22:13:20.000+00:00" and isinstance(row["ok"], bool)


def test_a_topic_of_one_text_column_gets_sentences() -> None:
    (record,) = make_by_columns(1, topic("line string")).take(1, 0)
    assert len(json.loads(record.value or b"")["line"].split(" ")) == 20
    (plain,) = make_sentences(1, 3, topic("line string", codec="string")).take(1, 0)
    assert len((plain.value or b"").decode().split(" ")) == 3
    assert len(Sentences(1, 4)(2)) == 2


def test_a_template_fills_its_places_and_leaves_other_braces() -> None:
    made = Template('{"n": {int:5:5}, "s": {seq}, "w": "{word:a}", "f": {float:2:2}, "o": {}}', 1)(2)
    assert [json.loads(text) for text in made] == [
        {"n": 5, "s": s, "w": "a", "f": 2, "o": {}} for s in (0, 1)
    ]


@pytest.mark.parametrize("text", ["{int:9:1}", "{int:a:b}", "{float:1}", "{words:0}", "{words:x}"])
def test_a_template_that_cannot_be_filled_is_said(text: str) -> None:
    with pytest.raises(SpecError, match="template"):
        Template(text, 1)


def test_what_does_not_fit_the_topic_is_said() -> None:
    with pytest.raises(SpecError, match="--template"):
        make_sentences(1, 5, topic("a string, b string"))
    with pytest.raises(SpecError, match="--template"):
        make_by_columns(1, topic("a array<int>, b int"))
    with pytest.raises(SpecError, match="no lines"):
        Lines(["", ""], "empty.txt")
    with pytest.raises(SpecError, match="too few"):
        Sentences(1, 0)


def test_lines_come_again_and_keys_from_bad_json_are_none() -> None:
    maker = make_texts(Lines(['{"k": 1}', "not json"], "f"), topic("k int", key="k"))
    assert [record.key for record in maker.take(3, 0)] == [b"1", None, b"1"]
