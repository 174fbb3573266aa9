"""Offset ranges of one batch: how much of each partition it takes, and how threads share it, without a shuffle.

Rules: nothing is lost or taken twice; a batch's ranges keep each partition's order; a job that asks for order per key
never has a partition split over two threads. Knows offsets only, not what a record costs.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence

from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange


def take_ranges(
    start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int], limit: int | None
) -> dict[TopicPartition, int]:
    """Ends of a batch of at most `limit` records, in proportion to each partition's backlog, so that all move on.

    At least one record is taken where any is there: a limit below 1 counts as 1.
    """
    waiting = {place: max(0, end.get(place, at) - at) for place, at in start.items()}
    total = sum(waiting.values())
    if limit is None or total <= max(1, limit):
        return {place: at + waiting[place] for place, at in start.items()}
    limit = max(1, limit)
    shares = {place: limit * count / total for place, count in waiting.items()}
    taken = {place: int(share) for place, share in shares.items()}
    rest = limit - sum(taken.values())
    by_remainder = sorted(shares, key=lambda place: (taken[place] - shares[place], place))
    for place in by_remainder[:rest]:
        taken[place] = min(waiting[place], taken[place] + 1)
    return {place: at + taken[place] for place, at in start.items()}


def split_ranges(
    ranges: Sequence[OffsetRange], threads: int, *, whole_partitions: bool = False
) -> list[list[OffsetRange]]:
    """At most `threads` non-empty groups with near-equal records; each partition's parts stay in order.

    Whole partitions go largest first to the least busy thread (LPT); otherwise the ranges are laid end to end and cut
    into equal lengths, so that groups differ by one record at most.
    """
    present = [r for r in ranges if r.records > 0]
    if not present:
        return []
    return _pack(present, threads) if whole_partitions else _cut(present, threads)


def _pack(ranges: Sequence[OffsetRange], threads: int) -> list[list[OffsetRange]]:
    groups: list[list[OffsetRange]] = [[] for _ in range(max(1, min(threads, len(ranges))))]
    heap = [(0, index) for index in range(len(groups))]
    for part in sorted(ranges, key=lambda r: (-r.records, r.place)):
        load, index = heapq.heappop(heap)
        groups[index].append(part)
        heapq.heappush(heap, (load + part.records, index))
    return [group for group in groups if group]


def _cut(ranges: Sequence[OffsetRange], threads: int) -> list[list[OffsetRange]]:
    total = sum(r.records for r in ranges)
    count = max(1, min(threads, total))
    edges = [total * (i + 1) // count for i in range(count)]
    groups: list[list[OffsetRange]] = [[] for _ in range(count)]
    group, laid = 0, 0
    for part in ranges:
        at = part.start
        while at < part.end:
            step = min(part.end - at, edges[group] - laid)
            groups[group].append(OffsetRange(part.place, at, at + step))
            at += step
            laid += step
            if laid == edges[group]:
                group += 1
    return groups


def share_threads(records: Sequence[int], threads: int) -> list[int]:
    """Threads for each stream of a batch: 1 where there are records, the rest where a thread has most to do."""
    shares = [1 if count > 0 else 0 for count in records]
    heap = [(-float(count), i) for i, count in enumerate(records) if count > 0]
    heapq.heapify(heap)
    for _ in range(threads - sum(shares) if heap else 0):
        _, i = heapq.heappop(heap)
        shares[i] += 1
        heapq.heappush(heap, (-records[i] / shares[i], i))
    return shares
