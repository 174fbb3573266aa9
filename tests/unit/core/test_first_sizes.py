"""With how many threads jobs begin: as they stood, within what holds now."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.core.jobs.first_sizes import Remembered, first_sizes
from penstock.model.jobs import Input, JobOptions, JobSpec, Output


def job(name: str = "split", **options: Any) -> JobSpec:
    return JobSpec(
        name=name,
        inputs=(Input(topic="in", view="in"),),
        outputs=(Output(topic="out"),),
        options=JobOptions(**options),
    )


def size(held: Remembered | None, slots: int = 32, **options: Any) -> int:
    return first_sizes([job(**options)], {} if held is None else {"split": held}, slots)["split"]


@pytest.mark.parametrize(
    ("held", "options", "threads"),
    [
        (None, {"threads": 2}, 2),
        (Remembered(10, 2), {"threads": 2}, 10),
        (Remembered(1, 2), {"threads": 2}, 1),  # it had gone down
        (Remembered(10, 2), {"threads": 3}, 3),  # its owner has said something new
        (Remembered(10, 1), {"max_threads": 6}, 6),
        (Remembered(1, 1), {"min_threads": 4}, 4),
        (Remembered(10, 1), {"scalable": False}, 1),
    ],
)
def test_a_job_begins_as_it_stood_within_its_bounds(
    held: Remembered | None, options: dict[str, Any], threads: int
) -> None:
    assert size(held, **options) == threads


def test_what_no_longer_fits_is_taken_from_all_alike() -> None:
    jobs = [job("split"), job("count"), job("keep")]
    held = {"split": Remembered(11, 1), "count": Remembered(21, 1)}
    assert first_sizes(jobs, held, 33) == {"split": 11, "count": 21, "keep": 1}
    assert first_sizes(jobs, held, 18) == {"split": 6, "count": 11, "keep": 1}
    assert first_sizes(jobs, held, 2) == {"split": 1, "count": 1, "keep": 1}
