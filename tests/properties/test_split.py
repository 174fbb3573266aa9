"""Splitting a batch: nothing lost, nothing twice, balanced, in order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.balance.split import share_threads, split_ranges, take_ranges
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange

counts = st.lists(st.integers(0, 5_000), min_size=1, max_size=20)
threads = st.integers(1, 40)


def _ranges(sizes: list[int]) -> list[OffsetRange]:
    return [OffsetRange(TopicPartition("t", p), 10 * p, 10 * p + n) for p, n in enumerate(sizes)]


@given(counts, threads)
def test_cut_covers_all_records_once_in_order_and_evenly(sizes: list[int], k: int) -> None:
    groups = split_ranges(_ranges(sizes), k)
    seen: dict[TopicPartition, int] = {}
    for part in (part for group in groups for part in group):
        assert seen.get(part.place, 10 * part.place.partition) == part.start
        seen[part.place] = part.end
    assert sum(r.records for g in groups for r in g) == sum(sizes)
    loads = [sum(r.records for r in g) for g in groups]
    assert len(groups) == min(k, sum(sizes))
    assert not loads or max(loads) - min(loads) <= 1


@given(counts, threads)
def test_whole_partitions_are_never_split_and_fit_the_lpt_bound(sizes: list[int], k: int) -> None:
    groups = split_ranges(_ranges(sizes), k, whole_partitions=True)
    assert sorted(r.place for g in groups for r in g) == [
        TopicPartition("t", p) for p, n in enumerate(sizes) if n
    ]
    assert all(r.records == sizes[r.place.partition] for g in groups for r in g)
    if groups:
        best = max(max(sizes), sum(sizes) / k)
        assert max(sum(r.records for r in g) for g in groups) <= 4 / 3 * best + 1


@given(counts, st.integers(0, 10_000))
def test_take_never_exceeds_the_limit_and_always_moves(sizes: list[int], limit: int) -> None:
    start = {TopicPartition("t", p): 5 for p in range(len(sizes))}
    end = {TopicPartition("t", p): 5 + n for p, n in enumerate(sizes)}
    taken = {place: at - 5 for place, at in take_ranges(start, end, limit).items()}
    assert all(0 <= n <= sizes[place.partition] for place, n in taken.items())
    assert sum(taken.values()) == min(sum(sizes), max(1, limit))


def test_take_treats_an_end_below_the_start_as_nothing() -> None:
    place = TopicPartition("t", 0)
    assert take_ranges({place: 7}, {place: 3}, None) == {place: 7}


@given(counts, threads)
def test_threads_are_shared_by_records(sizes: list[int], k: int) -> None:
    shares = share_threads(sizes, k)
    busy = [i for i, n in enumerate(sizes) if n]
    assert all(shares[i] >= 1 for i in busy)
    assert sum(shares) <= max(k, len(busy)) and (not busy or sum(shares) >= min(k, len(busy)))
