"""Names that may become files, and ids that sort and read as people say them."""

from __future__ import annotations

import pytest

from penstock.model.errors import SpecError
from penstock.model.ids import Fence, TaskId, TopicPartition, check_name


@pytest.mark.parametrize("name", ["a", "word-count", "a.b_c-9", "X" * 100])
def test_names(name: str) -> None:
    assert check_name("job", name) == name


@pytest.mark.parametrize(
    "name", ["", "9lives", "-x", ".x", "a b", "a/b", "../etc", "a\n", "é", "X" * 101, None, 7]
)
def test_what_is_no_name_is_refused_with_its_field_and_alphabet(name: object) -> None:
    with pytest.raises(SpecError, match="is not a name") as caught:
        check_name("topic", name)
    assert caught.value.field == "topic" and "letter" in caught.value.remedy


def test_ids_read_as_people_say_them() -> None:
    assert str(TaskId("count", 3)) == "count-3" and str(TopicPartition("words", 7)) == "words/7"
    assert str(Fence(2, 5)) == "generation 2, epoch 5"


def test_ids_sort_by_number_not_by_text() -> None:
    assert sorted([TaskId("x", 10), TaskId("x", 2)]) == [TaskId("x", 2), TaskId("x", 10)]
    assert Fence(1, 99) < Fence(2, 0) < Fence(2, 1)
