"""Checks of what a caller names, and the sentences when it is not there: the same for every kind of topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from penstock.model.errors import ConflictError, MissingError, SpecError
from penstock.model.ids import TopicPartition, check_name

PARTITIONS_MAX = 10_000


def check_new_topic(topic: str, partitions: int) -> None:
    """Refuse a topic that cannot be made."""
    check_name("topic", topic)
    if not 1 <= partitions <= PARTITIONS_MAX:
        raise SpecError("partitions", partitions, "is out of range", "give 1 to 10,000", f"topic {topic}")


def check_same_partitions(topic: str, there: int, wanted: int) -> None:
    """Refuse to make a topic again with another number of partitions."""
    if there != wanted:
        raise ConflictError(
            f"Topic {topic!r} has {there} partitions and was asked for with {wanted}; "
            "keys would change places: use its number, or another name."
        )


def missing_topic(name: str, there: Sequence[str]) -> MissingError:
    """The sentence for a topic that is not there."""
    known = (
        f"there are: {', '.join(there[:20])}{', …' if len(there) > 20 else ''}"
        if there
        else "there is none yet"
    )
    return MissingError(f"There is no topic {name!r} ({known}); create it first, or mend the name.")


def check_partition(place: TopicPartition, partitions: int) -> None:
    """Refuse a partition that its topic does not have."""
    if not 0 <= place.partition < partitions:
        raise MissingError(
            f"Topic {place.topic!r} has the partitions 0 to {partitions - 1}, so there is no partition "
            f"{place.partition}; choose one of those."
        )


def check_progress(reader: str, offsets: Mapping[TopicPartition, int]) -> None:
    """Refuse a reader without a name, and offsets below 0."""
    check_name("reader", reader)
    for place, offset in offsets.items():
        if offset < 0:
            raise SpecError(
                "offset", offset, f"of {place} is negative", "give the next offset to read, 0 or more"
            )
