"""With how many threads jobs begin a run: as they stood in the run before, within what holds now. Pure.

A job whose declared threads were changed since begins with those: its owner has said something new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.model.jobs import JobSpec


@dataclass(frozen=True, slots=True)
class Remembered:
    """A job's threads when they were last noted, and those it declared then."""

    threads: int
    declared: int


def first_sizes(jobs: Sequence[JobSpec], remembered: Mapping[str, Remembered], slots: int) -> dict[str, int]:
    """Threads per job. What no longer fits the slots is taken from remembered sizes alike, never below what is declared."""
    declared = {job.name: job.options.threads for job in jobs}
    wanted = {job.name: _wanted(job, remembered.get(job.name)) for job in jobs}
    extra = {name: max(0, threads - declared[name]) for name, threads in wanted.items()}
    base = sum(min(threads, declared[name]) for name, threads in wanted.items())
    asked, room = sum(extra.values()), max(0, slots - base)
    if asked <= room:
        return wanted
    return {
        name: threads - extra[name] + extra[name] * room // asked if extra[name] else threads
        for name, threads in wanted.items()
    }


def _wanted(job: JobSpec, held: Remembered | None) -> int:
    options = job.options
    if held is None or not options.scalable or held.declared != options.threads:
        return options.threads
    return max(options.min_threads, min(held.threads, options.max_threads))
