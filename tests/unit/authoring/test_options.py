"""A job's options laid in layers: defaults, what is declared, what settings say over it."""

from __future__ import annotations

import pytest

from penstock.authoring.options import build_job_options, layer_job_options, read_job_options
from penstock.model.errors import SpecError
from penstock.model.jobs import JobOptions, ScalingKnobs


def test_options_are_read_with_their_units_and_spark_names() -> None:
    fields = read_job_options(
        {"trigger": "1s", "mode": "complete", "slo_lag": 45, "max_bytes_per_batch": "2k"}
    )
    assert fields == {
        "interval_seconds": 1.0,
        "output_mode": "complete",
        "slo_lag_seconds": 45.0,
        "max_bytes_per_batch": 2048,
    }


def test_only_what_was_given_counts_as_given() -> None:
    options = build_job_options({"slo_lag_seconds": 9.0})
    assert options.model_fields_set == {"slo_lag_seconds"} and options.threads == 1


def test_knobs_keep_only_what_was_given() -> None:
    assert read_job_options({"scaling": ScalingKnobs(min_change=2)}) == {"scaling": {"min_change": 2}}


@pytest.mark.parametrize(
    ("fields", "threads", "tasks"),
    [
        ({}, 1, 1),
        ({"min_threads": 3}, 3, 1),
        ({"min_tasks": 2}, 1, 2),
        ({"threads": 2, "min_threads": 1}, 2, 1),
    ],
)
def test_threads_and_tasks_start_inside_their_limits(
    fields: dict[str, object], threads: int, tasks: int
) -> None:
    options = build_job_options(fields)
    assert (options.threads, options.tasks) == (threads, tasks)


def test_layers_lie_over_each_other_and_knobs_one_by_one() -> None:
    declared = build_job_options({"threads": 4, "scaling": {"min_change": 1, "target_ratio": 0.9}})
    found = layer_job_options(
        declared,
        under={"threads": 2, "slo_lag_seconds": 7.0, "scaling": {"min_change": 5, "warm_up_windows": 9}},
        over={"priority": 3, "scaling": {"target_ratio": 0.8}},
    )
    assert (found.threads, found.slo_lag_seconds, found.priority) == (4, 7.0, 3)
    knobs = found.scaling
    assert (knobs.min_change, knobs.warm_up_windows, knobs.target_ratio) == (1, 9, 0.8)
    assert layer_job_options(declared).threads == 4


def test_threads_that_nobody_gave_follow_a_limit_that_settings_raise() -> None:
    found = layer_job_options(build_job_options({}), over={"min_threads": 6})
    assert found.threads == 6


def test_what_contradicts_after_layering_names_where_it_was_written() -> None:
    with pytest.raises(SpecError) as caught:
        layer_job_options(
            build_job_options({"max_threads": 2}), over={"min_threads": 6}, place="penstock.toml:4"
        )
    error = caught.value
    assert (error.field, error.value, error.place) == ("min_threads", 6, "penstock.toml:4")


def test_every_option_can_be_given_alone() -> None:
    """Changing one field changes that field and nothing else."""
    values: dict[str, object] = {
        "interval_seconds": 3.0,
        "output_mode": "update",
        "slo_lag_seconds": 44.0,
        "priority": 4,
        "scalable": False,
        "tasks": 2,
        "min_tasks": 1,
        "max_tasks": 31,
        "threads": 2,
        "min_threads": 1,
        "max_threads": 55,
        "max_records_per_batch": 10,
        "max_bytes_per_batch": 20,
        "ordered": True,
        "exactly_once": True,
        "state_partitions": 3,
        "scaling": {"min_change": 9},
    }
    assert set(values) == set(JobOptions.model_fields)
    plain = JobOptions().model_dump()
    for name, value in values.items():
        changed = build_job_options({name: value}).model_dump()
        different = {field for field in plain if changed[field] != plain[field]}
        assert different <= {name} and (different or name in ("min_tasks", "min_threads"))
