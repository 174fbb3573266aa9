"""When a job that works through what is there has done so, and when it is given up.

A job reads its inputs in passes: each ends where its inputs ended when it began. Sources are read to where they ended at
the run's start, however they grow; what jobs of the pipeline write counts as work, so the last pass of a job is one that
began after all jobs that feed it had ended.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

FRUITLESS_STARTS = 3
"""A job that works through what is there is given up after so many starts in a row that committed no batch."""


def was_last(feeders: AbstractSet[str], ended_before: AbstractSet[str]) -> bool:
    """Whether a pass left nothing behind: all jobs that feed this one had ended before it began."""
    return feeders <= ended_before


def begins_again(
    feeders: AbstractSet[str], ended: AbstractSet[str], backlog_records: int, *, rested: bool
) -> bool:
    """Whether the next pass begins now: the last one as soon as it can, others at the trigger's pace and for a backlog."""
    return feeders <= ended or (rested and backlog_records > 0)


def is_hopeless(fruitless_starts: int) -> bool:
    """Whether to give up a job that was to work through what is there."""
    return fruitless_starts >= FRUITLESS_STARTS
