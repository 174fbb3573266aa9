"""Names without units and values with them, into typed fields; refused in the names that people write."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, Field, field_validator

from penstock.authoring.reading import build, friendly_name, nearest, read_fields
from penstock.model.errors import SpecError


class Inner(BaseModel):
    pause_seconds: float = Field(default=1.0, gt=0)


class Spec(BaseModel):
    name: str
    lag_seconds: float = Field(default=30.0, gt=0)
    heap_bytes: int = 0
    max_bytes_per_batch: int | None = None
    inner: Inner = Inner()

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        if value == "bad":
            raise ValueError("is bad; choose better")
        if value == "worse":
            raise SpecError("name", value, "is worse", "choose better")
        return value


ALIASES = {"delay": "lag_seconds"}


def test_names_lose_their_units_and_values_bring_them() -> None:
    given = {"lag": "2m", "heap": "1g", "max_bytes_per_batch": "1k", "inner": {"pause": "500ms"}}
    fields = read_fields(Spec, given)
    assert fields == {
        "lag_seconds": 120.0,
        "heap_bytes": 1 << 30,
        "max_bytes_per_batch": 1024,
        "inner": {"pause_seconds": 0.5},
    }


@pytest.mark.parametrize("name", ["lag", "lag_seconds", "delay"])
def test_a_field_goes_by_all_its_names(name: str) -> None:
    assert read_fields(Spec, {name: 5}, ALIASES) == {"lag_seconds": 5.0}


def test_none_is_kept_for_fields_that_may_be_without() -> None:
    assert read_fields(Spec, {"max_bytes_per_batch": None}) == {"max_bytes_per_batch": None}


def test_friendly_names() -> None:
    assert friendly_name("lag_seconds") == "lag" and friendly_name("lag_seconds", ALIASES) == "delay"
    assert (
        friendly_name("heap_bytes") == "heap"
        and friendly_name("max_bytes_per_batch") == "max_bytes_per_batch"
    )


def test_the_nearest_name_or_all_of_them() -> None:
    assert nearest("lagg", ["lag", "heap"]) == "the nearest is 'lag'"
    assert nearest("zzz", ["lag", "heap"]) == "known are heap, lag" and nearest("x", []) == "none are known"


@pytest.mark.parametrize(
    ("given", "field", "words"),
    [
        ({"lagg": 1}, "job.lagg", "is not an option"),
        ({"lag": 1, "delay": 2}, "job.delay", "is given twice"),
        ({"lag": "soon"}, "job.lag", "is not a duration"),
        ({"heap": "big"}, "job.heap", "is not a size"),
        ({"inner": {"pauses": 1}}, "job.inner.pauses", "is not an option"),
        ({"inner": {"pause": "x"}}, "job.inner.pause", "is not a duration"),
    ],
)
def test_what_cannot_be_read_is_refused(given: dict[str, object], field: str, words: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_fields(Spec, given, ALIASES, "f.toml:3", "job.")
    error = caught.value
    assert (error.field, error.place) == (field, "f.toml:3") and words in error.problem and error.remedy


@pytest.mark.parametrize(
    ("fields", "field", "value"),
    [
        ({}, "name", None),
        ({"name": 5}, "name", 5),
        ({"name": "x", "lag_seconds": 0}, "delay", 0),
        ({"name": "x", "heap_bytes": "y"}, "heap", "y"),
        ({"name": "x", "inner": {"pause_seconds": -1}}, "inner.pause", -1),
        ({"name": "bad"}, "name", "bad"),
        ({"name": "worse"}, "name", "worse"),
    ],
)
def test_what_is_not_valid_is_refused_in_the_names_that_people_write(
    fields: dict[str, object], field: str, value: object
) -> None:
    with pytest.raises(SpecError) as caught:
        build(Spec, fields, ALIASES, "f.toml:3")
    error = caught.value
    assert (error.field, error.value, error.place) == (field, value, "f.toml:3")
    assert error.problem and error.remedy and "Input should" not in str(error)
