"""How fast a topic grows: slopes over its end offsets, steps met at once, changes said, falls forgotten."""

from __future__ import annotations

import math
from collections.abc import Iterable

import pytest

from penstock.core.sizing.production import Production, TopicRate, observe_ends, rate_of
from penstock.model.ids import TopicPartition
from penstock.model.observations import PartitionSample


def look(at: float, *ends: int, job: str = "x", topic: str = "a") -> list[PartitionSample]:
    return [PartitionSample(job, TopicPartition(topic, i), at, end, 0) for i, end in enumerate(ends)]


def seen(collections: Iterable[list[PartitionSample]], keep_seconds: float = 10.0) -> Production:
    production = Production(keep_seconds)
    for samples in collections:
        production = observe_ends(production, samples)
    return production


def rate(collections: Iterable[list[PartitionSample]], keep_seconds: float = 10.0) -> TopicRate:
    return rate_of(seen(collections, keep_seconds), "a")


def at_rates(*rates: float, step: float = 0.5) -> list[list[PartitionSample]]:
    """One look each half second, at a rate a look."""
    total, looks = 0.0, [look(0.0, 0)]
    for i, each in enumerate(rates):
        total += each * step
        looks.append(look((i + 1) * step, round(total)))
    return looks


def test_nothing_is_known_of_a_topic_before_two_looks() -> None:
    assert math.isnan(rate([]).per_second) and math.isnan(rate([look(0.0, 5)]).per_second)


def test_a_steady_rate_is_its_slope_over_all_partitions() -> None:
    found = rate(look(i, 60 * i, 40 * i) for i in range(8))
    assert found.per_second == pytest.approx(100.0) and not found.changing


def test_rates_below_one_a_second_are_rates() -> None:
    assert rate(look(2.0 * i, i) for i in range(6)).per_second == pytest.approx(0.5)


def test_a_topic_that_does_not_grow_has_the_rate_zero() -> None:
    assert rate(look(i, 77) for i in range(8)) == TopicRate(0.0, False)


def test_a_step_up_is_met_in_one_step_and_said() -> None:
    found = rate(at_rates(*[1_000.0] * 10, *[4_000.0] * 10))
    assert found.per_second == pytest.approx(4_000.0, rel=0.02) and found.changing


@pytest.mark.parametrize("after", range(5, 17))
def test_a_step_up_is_met_wherever_it_lies(after: int) -> None:
    mixed = 2_200.0  # the look in which it came
    found = rate(at_rates(*[1_000.0] * (20 - after - 1), mixed, *[4_000.0] * after))
    assert found.per_second == pytest.approx(4_000.0, rel=0.001) and found.changing


def test_right_after_a_step_up_it_is_not_to_be_relied_on() -> None:
    rising = [rate(at_rates(*[1_000.0] * 12, *[4_000.0] * n)).rising for n in range(12)]
    assert not rising[0] and all(rising[1:8]) and not any(rising[10:])
    assert not rate(at_rates(*[4_000.0] * 12, *[1_000.0] * 4)).rising


def test_a_producer_in_few_bursts_makes_no_step() -> None:
    for first in range(6):
        looks = ([0.0] * first + ([6_000.0] + [0.0] * 5) * 4)[:20]
        assert not rate(at_rates(*looks)).changing


def test_a_step_down_is_not_met_at_once_but_said() -> None:
    found = rate(at_rates(*[4_000.0] * 10, *[1_000.0] * 10))
    assert 1_500.0 < found.per_second < 3_500.0 and found.changing


def test_bursts_of_a_producer_average_out() -> None:
    found = rate(at_rates(*[0.0, 0.0, 0.0, 4_000.0] * 5))
    assert found.per_second == pytest.approx(1_000.0, rel=0.2)


def test_random_counts_are_no_change() -> None:
    found = rate(at_rates(10, 14, 9, 12, 11, 13, 8, 15, 12, 10, 14, 12, 9, 13, 16, 11, 12, 14, 10, 13))
    assert not found.changing
    assert not rate(at_rates(*[10.0] * 10, *[12.0] * 10)).changing, "ten more of fifty may be chance"
    assert rate(at_rates(*[1_000.0] * 10, *[1_200.0] * 10)).changing, (
        "a thousand more of five thousand may not"
    )


def test_only_the_seconds_that_are_kept_count() -> None:
    found = rate(at_rates(*[9_000.0] * 20, *[100.0] * 30))
    assert found.per_second == pytest.approx(100.0) and not found.changing


def test_an_end_that_falls_starts_anew() -> None:
    looks = [*(look(i, 1_000 * i) for i in range(6)), look(6, 10), look(7, 60)]
    assert rate(looks).per_second == pytest.approx(50.0)


def test_a_new_partition_starts_anew() -> None:
    looks = [look(0, 0), look(1, 10), look(2, 20, 5_000), look(3, 30, 5_010)]
    assert rate(looks).per_second == pytest.approx(20.0)


def test_jobs_that_read_the_same_topic_count_once() -> None:
    looks = [[*look(i, 100 * i), *look(i, 100 * i - 5, job="y")] for i in range(1, 6)]
    assert rate(looks).per_second == pytest.approx(100.0)


def test_a_look_that_is_late_or_doubled_is_no_news() -> None:
    looks = [look(i, 100 * i) for i in range(6)]
    assert seen([*looks, looks[2], looks[5]]) == seen(looks)


def test_topics_are_told_apart() -> None:
    production = seen([*(look(i, 10 * i) + look(i, 90 * i, topic="b") for i in range(5))])
    assert rate_of(production, "a").per_second == pytest.approx(10.0)
    assert rate_of(production, "b").per_second == pytest.approx(90.0)
