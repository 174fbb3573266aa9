"""Whether a record's value has the fields that its topic declares.

Spark reads a field that it does not know as nothing, and a column that is not there as null: a misspelt name would be
lost without a word. What is no JSON object at all would become a dead letter.
"""

from __future__ import annotations

import json
from typing import cast

from penstock.authoring.reading import nearest
from penstock.authoring.schema import parse_columns
from penstock.model.errors import SpecError
from penstock.model.topics import TopicSpec

UNCHECKED = "--unchecked"
"""The option that lets any field pass."""


def check_fields(value: str, topic: TopicSpec, place: str = "") -> None:
    """A SpecError for a value that is no JSON object, or for its first field that is no column of its topic."""
    if topic.codec != "json":
        return
    try:
        held: object = json.loads(value)
    except ValueError:
        held = None
    if not isinstance(held, dict):
        raise SpecError(
            "value",
            value,
            f"is no JSON object with the columns of topic {topic.name!r}",
            f"write it as JSON; {UNCHECKED} sends it as it is, to become a dead letter",
            place,
        )
    columns = [column.name for column in parse_columns("schema", topic.columns)]
    for field in cast("dict[str, object]", held):
        if field not in columns:
            raise SpecError(
                "field",
                field,
                f"is no column of topic {topic.name!r} ({', '.join(columns)})",
                f"{nearest(field, columns)}; {UNCHECKED} sends it as it is",
                place,
            )
