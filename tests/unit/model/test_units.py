"""Durations, rates and sizes: what people write, what is refused, and what people read."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.model.errors import SpecError
from penstock.model.units import (
    format_bytes,
    format_rate,
    format_seconds,
    parse_bytes,
    parse_rate_per_second,
    parse_seconds,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30s", 30.0),
        ("2m", 120.0),
        ("500ms", 0.5),
        ("1.5h", 5400.0),
        ("7d", 604_800.0),
        (" 3 s ", 3.0),
        ("4", 4.0),
        ("2M", 120.0),
        (5, 5.0),
        (0.25, 0.25),
        (0, 0.0),
    ],
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_seconds("lag", text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "-3s", "3 weeks", "1e3", "3s5", True, None, -1, math.nan, math.inf, []]
)
def test_what_is_no_duration_is_refused_with_its_field(text: object) -> None:
    with pytest.raises(SpecError, match=r"^lag = .* is not a duration") as caught:
        parse_seconds("lag", text)
    assert caught.value.field == "lag" and caught.value.value is text and caught.value.remedy


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("100/s", 100.0),
        ("6k/m", 100.0),
        ("2.5M/s", 2.5e6),
        ("1800/h", 0.5),
        ("3/ms", 3_000.0),
        ("7", 7.0),
        (40, 40.0),
        (0.5, 0.5),
        (0.00001, 0.00001),
        (1e17, 1e17),
        (0, 0.0),
    ],
)
def test_rates(text: object, rate: float) -> None:
    assert parse_rate_per_second("rate", text) == pytest.approx(rate)


@pytest.mark.parametrize(
    "text", ["", "/s", "-1/s", "5/week", "5K/s", "fast", -3, math.nan, math.inf, True, None]
)
def test_what_is_no_rate_is_refused_with_its_field(text: object) -> None:
    with pytest.raises(SpecError, match=r"^rate = .* is not a rate"):
        parse_rate_per_second("rate", text)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64MB", 64 << 20),
        ("1g", 1 << 30),
        ("1.5k", 1536),
        ("2 TB", 2 << 40),
        ("10", 10),
        (0, 0),
        (4096, 4096),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_bytes("heap", text) == size


@pytest.mark.parametrize("text", ["", "GB", "-1", -1, "3 PB", True, None, math.nan])
def test_what_is_no_size_is_refused_with_its_field(text: object) -> None:
    with pytest.raises(SpecError, match=r"^heap = .* is not a size"):
        parse_bytes("heap", text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 ms"),
        (0.85, "850 ms"),
        (12.34, "12.3 s"),
        (119.0, "119.0 s"),
        (120.0, "2 min"),
        (250.0, "4 min 10 s"),
        (10_920.0, "3 h 2 min"),
        (7_200.0, "2 h"),
        (math.inf, "∞"),
        (math.nan, "-"),
    ],
)
def test_durations_for_people(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (0.0, "0/s"),
        (0.5, "0.5/s"),
        (12.34, "12.3/s"),
        (155.4, "155/s"),
        (3_100.0, "3,100/s"),
        (31_000.0, "31k/s"),
        (2.4e6, "2.4M/s"),
        (999_999.0, "1,000k/s"),
        (3.2e9, "3,200M/s"),
        (math.nan, "-"),
        (math.inf, "-"),
    ],
)
def test_rates_for_people(rate: float, text: str) -> None:
    assert format_rate(rate) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1536, "1.5 KB"),
        (1000 << 10, "1,000 KB"),
        (1023 << 20, "1,023 MB"),
        (5 << 30, "5 GB"),
        (2000 << 30, "2,000 GB"),
    ],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert format_bytes(size) == text


@given(st.floats(1e-3, 1e13))
def test_people_never_read_powers_of_ten(number: float) -> None:
    for text in (format_rate(number), format_bytes(number), format_seconds(number)):
        assert "e+" not in text and "nan" not in text


@given(st.floats(0.0, 1e9))
def test_a_number_of_seconds_is_itself(seconds: float) -> None:
    assert parse_seconds("x", seconds) == seconds and parse_rate_per_second("x", seconds) == seconds
