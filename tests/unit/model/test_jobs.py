"""What a job may be declared to be: bounds of options, labels, topics once each, frozen values."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from penstock.model.jobs import Input, JobOptions, JobSpec, Output, ScalingKnobs, SinkSpec, SourceSpec
from penstock.model.observations import InstanceColumns, InstanceSample
from penstock.model.topics import TopicSpec


@pytest.mark.parametrize(
    "options",
    [
        {"interval_seconds": 0},
        {"slo_lag_seconds": -1},
        {"tasks": 0},
        {"tasks": 1001},
        {"threads": 0},
        {"min_threads": 0},
        {"max_records_per_batch": 0},
        {"priority": 101},
        {"output_mode": "all"},
        {"state_partitions": 0},
        {"nonsense": 1},
        {"min_threads": 5, "max_threads": 4},
        {"min_tasks": 3, "max_tasks": 2},
    ],
)
def test_options_outside_their_bounds_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        JobOptions(**options)


@pytest.mark.parametrize(
    "knobs",
    [
        {"policy_interval_seconds": 0},
        {"warm_up_windows": -1},
        {"activation_windows": 0},
        {"activation": "mean"},
        {"min_change": -1},
        {"max_ineffective": 0},
        {"target_ratio": 0},
        {"target_ratio": 1.1},
        {"roll_back_loss": 1},
        {"scale_in_share": 0},
        {"more": 1},
    ],
)
def test_knobs_outside_their_bounds_are_refused(knobs: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ScalingKnobs(**knobs)


def test_every_option_says_what_it_is_for() -> None:
    for model in (JobOptions, ScalingKnobs, TopicSpec):
        for name, field in model.model_fields.items():
            assert field.description or name == "name", f"{model.__name__}.{name}"


def test_the_words_that_contradict_are_both_named() -> None:
    with pytest.raises(ValidationError, match="min_threads = 5 is above max_threads = 4"):
        JobOptions(min_threads=5, max_threads=4)


def test_specs_do_not_change() -> None:
    with pytest.raises(ValidationError):
        JobOptions().threads = 3  # type: ignore[misc]


def test_topics_are_told_once_in_the_order_read() -> None:
    spec = JobSpec(
        name="x",
        inputs=(
            Input(topic="b"),
            Input(topic="a"),
            Input(topic="b"),
            Input(source=SourceSpec(format="rate")),
        ),
        outputs=(Output(topic="c"), Output(sink=SinkSpec(format="noop")), Output(topic="c")),
    )
    assert (spec.input_topics, spec.output_topics) == (("b", "a"), ("c",))
    assert [i.label for i in spec.inputs] == ["b", "a", "b", "rate"]
    assert [o.label for o in spec.outputs] == ["c", "noop", "c"]
    assert Input().label == Output().label == "?"


def test_dead_letters_have_a_topic_beside_their_own() -> None:
    assert TopicSpec(name="words", columns="n long").dead_letter == "words.dead"


def test_instances_as_columns_are_the_same_sequence() -> None:
    rows = [InstanceSample(1.0, 2.0, 3.0), InstanceSample(4.0, 5.0, 6.0)]
    columns = InstanceColumns.of(rows)
    assert list(columns) == rows and len(columns) == 2 and columns[-1] == rows[1]
    assert list(columns[:1]) == rows[:1] and InstanceColumns.of(columns) == columns
