"""Windows of whole batches: what closes one, and what batches that are late, doubled, torn or out of order do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fleets import make_job, make_pipeline
from penstock.core.sizing.windows import AHEAD_SECONDS, Windows, is_sound, observe_samples, start_windows
from penstock.model.ids import TaskId, TopicPartition
from penstock.model.jobs import ScalingKnobs
from penstock.model.observations import BatchSample, InstanceSample, JobWindow, PartitionSample, StageSample

STAGE = StageSample(0, 2, None, 1.0, 100.0, 100.0, longest_seconds=0.6)


def opened(tasks: int = 1) -> Windows:
    return start_windows(
        make_pipeline(make_job("x", ["a"], ["b"], scaling=ScalingKnobs(), tasks=tasks), make_job("y", ["b"]))
    )


def batch(
    number: int, started_at: float, duration: float = 2.0, task: int = 0, **changes: Any
) -> BatchSample:
    sample = BatchSample(
        TaskId("x", task), 0, 0, number, started_at, duration, duration - 0.5, 2,
        {"a": 100.0}, {"b": 200.0}, 0.0, 0.0, (STAGE,),
    )  # fmt: skip
    return replace(sample, **changes)


def place(at: float, end: int, committed: int, partition: int = 0, topic: str = "a") -> PartitionSample:
    return PartitionSample("x", TopicPartition(topic, partition), at, end, committed)


def feed(
    windows: Windows, *collections: Iterable[BatchSample], places: Sequence[PartitionSample] = ()
) -> tuple[Windows, list[JobWindow]]:
    closed: list[JobWindow] = []
    for samples in collections:
        windows, done = observe_samples(windows, samples, places)
        closed += done
    return windows, closed


def steady(count: int, start: float = 0.0) -> list[BatchSample]:
    """Back to back, two seconds each."""
    return [batch(i, start + 2.0 * i) for i in range(count)]


def test_a_window_closes_at_the_first_commit_after_its_length() -> None:
    _, closed = feed(opened(), steady(4))
    assert closed == []
    _, closed = feed(opened(), steady(5))
    (window,) = closed
    assert (window.started_at, window.ended_at, window.batches) == (0.0, 10.0, 5)
    assert (window.records_in, window.records_out) == ({"a": 500.0}, {"b": 1_000.0})
    assert (window.overhead_seconds, window.batch_seconds, window.threads) == (0.5, 2.0, 2)
    assert window.stages[0].useful_seconds == 5.0


def test_the_next_window_starts_where_the_last_one_ended() -> None:
    _, closed = feed(opened(), steady(10))
    assert [(w.started_at, w.ended_at) for w in closed] == [(0.0, 10.0), (10.0, 20.0)]


def test_one_long_batch_is_a_window() -> None:
    _, (window,) = feed(opened(), [batch(0, 5.0, 47.0)])
    assert (window.elapsed_seconds, window.batches, window.late_batches) == (47.0, 1, 1)


def test_batches_longer_than_the_objective_are_counted() -> None:
    _, (window,) = feed(opened(), [batch(0, 0.0, 2.0), batch(1, 2.0, 2.1), batch(2, 4.1, 6.0)])
    assert window.late_batches == 2


def test_collections_may_cut_anywhere() -> None:
    whole = feed(opened(), steady(10))[1]
    assert feed(opened(), *([b] for b in steady(10)))[1] == whole


def test_a_doubled_batch_counts_once() -> None:
    samples = steady(5)
    doubled = [*samples[:3], *samples[:3], *samples[2:], samples[4]]
    assert feed(opened(), doubled)[1] == feed(opened(), samples)[1]


def test_a_doubled_batch_of_a_closed_window_is_late() -> None:
    windows, _ = feed(opened(), steady(5))
    _, closed = feed(
        windows, steady(5), steady(5, 10.0)[:0], [batch(5 + i, 10.0 + 2.0 * i) for i in range(5)]
    )
    assert [w.batches for w in closed] == [5]


@settings(max_examples=50, deadline=None)
@given(st.permutations(range(5)))
def test_within_a_collection_order_says_nothing(order: list[int]) -> None:
    samples = steady(5)
    assert feed(opened(), [samples[i] for i in order])[1] == feed(opened(), samples)[1]


def test_a_batch_that_comes_after_a_newer_one_still_counts() -> None:
    first, second, third, fourth, fifth = steady(5)
    _, (window,) = feed(opened(), [first, third], [second, fourth], [fifth])
    assert (window.batches, window.records_in) == (5, {"a": 500.0})


def test_a_batch_that_ended_before_the_window_began_is_late_and_left_out() -> None:
    first, second, third, fourth, fifth = steady(5)
    windows, (window,) = feed(opened(), [first, third, fourth, fifth])
    assert window.batches == 4
    assert feed(windows, [second])[0]["x"].batches == ()


def torn_batches() -> list[tuple[str, BatchSample]]:
    nan, good = math.nan, batch(2, 4.0)
    rows = (InstanceSample(1.0, 1.0, nan),)
    return [
        ("no duration", replace(good, duration_seconds=nan)),
        ("below zero", replace(good, duration_seconds=-1.0)),
        ("no time", replace(good, duration_seconds=0.0)),
        ("records missing", replace(good, records_in={"a": nan})),
        ("records below zero", replace(good, records_in={"a": -5.0})),
        ("endless", replace(good, records_out={"b": math.inf})),
        ("useful time missing", replace(good, stages=(replace(STAGE, useful_seconds=nan),))),
        ("useful time below zero", replace(good, stages=(replace(STAGE, useful_seconds=-0.1),))),
        ("longest missing", replace(good, stages=(replace(STAGE, longest_seconds=nan),))),
        ("instance missing", replace(good, stages=(replace(STAGE, instances=rows),))),
        ("wasted missing", replace(good, stages=(replace(STAGE, wasted_seconds=nan),))),
        ("tasks below zero", replace(good, stages=(replace(STAGE, spark_tasks=-1),))),
        ("no threads", replace(good, threads=0)),
        ("no start", replace(good, started_at=nan)),
    ]


@pytest.mark.parametrize("torn", [b for _, b in torn_batches()], ids=[name for name, _ in torn_batches()])
def test_a_torn_batch_is_left_out_and_counted(torn: BatchSample) -> None:
    samples = steady(5)
    assert not is_sound(torn) and all(is_sound(b) for b in samples)
    _, (window,) = feed(opened(), [*samples[:2], torn, *samples[3:]])
    assert (window.batches, window.rejected_batches, window.records_in) == (4, 1, {"a": 400.0})


def test_the_count_of_torn_batches_starts_anew() -> None:
    samples = [*steady(4), batch(90, 7.0, math.nan), *steady(10)[4:]]
    _, closed = feed(opened(), *([b] for b in samples))
    assert [w.rejected_batches for w in closed] == [1, 0]


def test_another_number_of_threads_closes_a_window_early() -> None:
    samples = [*steady(2), *(replace(b, threads=5) for b in steady(8)[2:])]
    _, closed = feed(opened(), samples)
    assert [(w.threads, w.batches, w.ended_at) for w in closed] == [(2, 2, 4.0), (5, 5, 14.0)]


def test_a_straggler_with_the_old_threads_does_not_close_the_new_window() -> None:
    straggler = batch(1, 0.5, 3.0)
    windows, closed = feed(opened(), [batch(0, 0.0), batch(2, 2.0, 2.0, threads=5)], [straggler])
    assert [w.threads for w in closed] == [2]
    assert [b.threads for b in windows["x"].batches] == [5]


def test_a_new_generation_closes_a_window_and_starts_afresh() -> None:
    newer = [replace(b, generation=1, batch_id=i, threads=4) for i, b in enumerate(steady(9)[3:])]
    _, closed = feed(opened(), [*steady(3), *newer])
    assert [(w.generation, w.threads, w.batches) for w in closed] == [(0, 2, 3), (1, 4, 5)]


def test_an_older_generation_has_nothing_to_say() -> None:
    windows, _ = feed(
        opened(), [replace(batch(0, 0.0), generation=3)], [replace(batch(7, 1.0), generation=2)]
    )
    assert [b.generation for b in windows["x"].batches] == [3]


def test_threads_of_all_tasks_add_up_and_missing_tasks_are_counted() -> None:
    both = [b for i in range(5) for b in (batch(i, 2.0 * i), batch(i, 2.0 * i, task=1, threads=3))]
    _, (window, *_) = feed(opened(tasks=3), both)
    assert (window.threads, window.missing_tasks) == (5, 1)


def test_many_tasks_that_are_told_of_twice_count_once() -> None:
    rows = [batch(i, 2.0 * i, task=task) for i in range(4) for task in range(200)]
    windows, _ = feed(opened(tasks=200), rows, rows)
    assert len(windows["x"].batches) == 800


def test_other_jobs_windows_stay_open() -> None:
    windows, closed = feed(opened(), steady(5))
    assert {w.job for w in closed} == {"x"}
    assert windows["y"].batches == () and math.isnan(windows["y"].started_at)


def test_jobs_that_are_not_of_the_pipeline_are_passed_over() -> None:
    stranger = replace(batch(0, 0.0, 50.0), task=TaskId("stranger", 0))
    assert feed(opened(), [stranger])[1] == []


def test_a_batch_from_the_future_is_left_out_and_what_follows_it_is_not() -> None:
    """Believed, it would make every later batch late."""
    windows, closed = observe_samples(opened(), [*steady(4), batch(9, 1e6)], [], now=10.0)
    assert closed == ()
    _, (window,) = observe_samples(windows, [batch(4, 8.0)], [], now=10.0)
    assert (window.batches, window.rejected_batches, window.ended_at) == (5, 1, 10.0)


def test_clocks_may_differ_a_little() -> None:
    _, (window,) = observe_samples(opened(), [batch(0, 60.0, 10.0)], [], now=70.0 - AHEAD_SECONDS)
    assert window.ended_at == 70.0


# Partitions


def test_production_and_backlog_are_read_off_the_partitions() -> None:
    windows, _ = feed(opened(), [], places=[place(0.0, 1_000, 900), place(0.0, 500, 500, 1)])
    _, (window,) = feed(windows, steady(5), places=[place(10.0, 1_500, 1_200), place(10.0, 700, 600, 1)])
    assert window.production_rates == {"a": pytest.approx(70.0)}
    assert (window.backlog_before, window.backlog) == ({"a": 100.0}, {"a": 400.0})
    assert window.partition_backlog == {TopicPartition("a", 0): 300, TopicPartition("a", 1): 100}


def test_production_is_not_known_from_one_look() -> None:
    _, (window,) = feed(opened(), steady(5), places=[place(10.0, 1_500, 1_200)])
    assert math.isnan(window.production_rates["a"]) and window.backlog == {"a": 300.0}


def test_production_is_not_known_where_an_end_fell() -> None:
    windows, _ = feed(opened(), [], places=[place(0.0, 1_000, 900)])
    _, (window,) = feed(windows, steady(5), places=[place(10.0, 5, 5)])
    assert math.isnan(window.production_rates["a"])


def test_an_older_look_at_a_partition_changes_nothing() -> None:
    windows, _ = feed(opened(), [], places=[place(5.0, 1_000, 900)])
    windows, _ = feed(windows, [], places=[place(4.0, 9_999, 0)])
    assert windows["x"].places[TopicPartition("a", 0)].end == 1_000


def test_a_look_without_an_instant_says_nothing() -> None:
    windows, _ = feed(opened(), [], places=[place(math.nan, 7, 7)])
    windows, _ = feed(windows, [], places=[place(1.0, 1_000, 900)])
    windows, _ = feed(windows, [], places=[place(math.nan, 7, 7)])
    assert windows["x"].places[TopicPartition("a", 0)].end == 1_000


def test_a_look_from_the_future_says_nothing() -> None:
    windows, _ = observe_samples(opened(), [], [place(1e6, 7, 7)], now=1.0)
    windows, _ = observe_samples(windows, [], [place(1.0, 1_000, 900)], now=1.0)
    assert windows["x"].places[TopicPartition("a", 0)].end == 1_000
