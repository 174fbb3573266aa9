"""What every kind of topics promises (`ports.topics.Topics`)."""

from __future__ import annotations

import uuid

import pytest

from penstock.adapters.topics.partitioner import partition_of
from penstock.model.errors import ConflictError, MissingError, SpecError
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange, Record
from penstock.ports.topics import Topics

AT = 1_700_000_000_000
"""A time of records that no store takes for its own (milliseconds since 1970)."""


@pytest.fixture
def name() -> str:
    return f"t-{uuid.uuid4().hex[:8]}"


def record(n: int, key: bytes | None = None) -> Record:
    return Record(key, b"value %d" % n, AT + n)


def place(name: str, partition: int = 0) -> TopicPartition:
    return TopicPartition(name, partition)


def test_a_topic_is_made_once(topics: Topics, name: str) -> None:
    assert topics.create(name, 3)
    assert not topics.create(name, 3)
    assert name in topics.topics()
    assert [p.place for p in topics.describe(name).partitions] == [place(name, n) for n in range(3)]


def test_another_number_of_partitions_is_a_conflict(topics: Topics, name: str) -> None:
    topics.create(name, 3)
    with pytest.raises(ConflictError, match=r"has 3 partitions and was asked for with 4"):
        topics.create(name, 4)
    assert len(topics.describe(name).partitions) == 3


@pytest.mark.parametrize("partitions", [0, -1, 10_001])
def test_a_wrong_number_of_partitions_is_refused(topics: Topics, name: str, partitions: int) -> None:
    with pytest.raises(SpecError, match="partitions"):
        topics.create(name, partitions)
    assert name not in topics.topics()


@pytest.mark.parametrize("wrong", ["", "a b", "../up", "1a", "a" * 101, "a\n"])
def test_a_wrong_name_is_refused(topics: Topics, wrong: str) -> None:
    with pytest.raises(SpecError, match="topic"):
        topics.create(wrong, 1)


@pytest.mark.parametrize("setting", ["retention.ms", "retention.bytes"])
@pytest.mark.parametrize("value", ["soon", "0", "-2", "1.5", ""])
def test_a_wrong_limit_is_refused(topics: Topics, name: str, setting: str, value: str) -> None:
    with pytest.raises(SpecError, match=setting):
        topics.create(name, 1, {setting: value})
    assert name not in topics.topics()


def test_config_is_kept_and_replaced_when_given(topics: Topics, name: str) -> None:
    topics.create(name, 1, {"retention.ms": "86400000"})
    assert topics.describe(name).config["retention.ms"] == "86400000"
    topics.create(name, 1)
    assert topics.describe(name).config["retention.ms"] == "86400000"
    topics.create(name, 1, {"retention.ms": "7200000"})
    assert topics.describe(name).config["retention.ms"] == "7200000"


def test_a_missing_topic_is_a_sentence_everywhere(topics: Topics, name: str) -> None:
    topics.create(name, 1)
    calls = [
        lambda: topics.describe("nowhere"),
        lambda: topics.delete("nowhere"),
        lambda: topics.end_offsets([name, "nowhere"]),
        lambda: topics.begin_offsets(["nowhere"]),
        lambda: topics.offsets_at("nowhere", 0),
        lambda: topics.append("nowhere", [record(1)]),
        lambda: topics.append("nowhere", [record(1)], 0),
        lambda: topics.read(place("nowhere"), 0, 1),
        lambda: topics.readers("nowhere"),
    ]
    for call in calls:
        with pytest.raises(MissingError, match=r"no topic 'nowhere'.*" + name):
            call()


@pytest.mark.parametrize("partition", [-1, 2])
def test_a_missing_partition_is_a_sentence(topics: Topics, name: str, partition: int) -> None:
    topics.create(name, 2)
    with pytest.raises(MissingError, match=r"partitions 0 to 1"):
        topics.append(name, [record(1)], partition)
    with pytest.raises(MissingError, match=r"partitions 0 to 1"):
        topics.read(place(name, partition), 0, 1)


def test_records_come_back_as_they_went_in(topics: Topics, name: str) -> None:
    topics.create(name, 1)
    went = [
        Record(b"k", b"v", AT),
        Record(None, b"no key", AT + 1),
        Record(b"no value", None, AT + 2),
        Record(b"", b"", AT + 3),
        Record(bytes(range(256)), bytes(range(256)) * 5, AT + 4),
        Record(b"h", b"headers", AT + 5, (("a", b"1"), ("a", b"2"), ("ünï", None), ("", b""))),
        Record(b"early", b"out of order", AT - 1000),
    ]
    written = topics.append(name, went, 0)
    assert written == {place(name): OffsetRange(place(name), 0, len(went))}
    came = topics.read(place(name), 0, 100)
    assert [c.record for c in came] == went
    assert [c.offset for c in came] == list(range(len(went)))
    assert {c.place for c in came} == {place(name)}


def test_a_large_record_comes_back(topics: Topics, name: str) -> None:
    topics.create(name, 1, {"max.message.bytes": str(12 << 20)})
    went = Record(b"large", b"x" * (10 << 20), AT)
    topics.append(name, [went, record(1)])
    assert [c.record for c in topics.read(place(name), 0, 2)] == [went, record(1)]


def test_keys_choose_the_partition_as_kafka_does(topics: Topics, name: str) -> None:
    topics.create(name, 7)
    went = [record(n, b"key %d" % (n % 50)) for n in range(500)]
    written = topics.append(name, went)
    for n in range(7):
        mine = [r for r in went if r.key is not None and partition_of(r.key, 7) == n]
        came = topics.read(place(name, n), 0, 1000)
        assert [c.record for c in came] == mine
        assert written.get(place(name, n), OffsetRange(place(name, n), 0, 0)).records == len(mine)


def test_records_without_a_key_go_round(topics: Topics, name: str) -> None:
    topics.create(name, 4)
    for _ in range(6):
        topics.append(name, [record(n) for n in range(10)])
    assert sorted(topics.end_offsets([name]).values()) == [15, 15, 15, 15]


def test_offsets_go_on_from_append_to_append(topics: Topics, name: str) -> None:
    topics.create(name, 2)
    assert topics.append(name, [record(1), record(2)], 1) == {
        place(name, 1): OffsetRange(place(name, 1), 0, 2)
    }
    assert topics.append(name, [record(3)], 1) == {place(name, 1): OffsetRange(place(name, 1), 2, 3)}
    assert topics.end_offsets([name]) == {place(name, 0): 0, place(name, 1): 3}
    assert topics.begin_offsets([name]) == {place(name, 0): 0, place(name, 1): 0}
    info = topics.describe(name)
    assert [(p.begin, p.end) for p in info.partitions] == [(0, 0), (0, 3)]
    assert info.records == 3


def test_nothing_appended_is_nothing_written(topics: Topics, name: str) -> None:
    topics.create(name, 2)
    assert topics.append(name, []) == {}
    assert topics.append(name, [], 0) == {}
    assert set(topics.end_offsets([name]).values()) == {0}


def test_reading_part_of_a_partition(topics: Topics, name: str) -> None:
    topics.create(name, 1)
    for first in range(0, 30, 3):
        topics.append(name, [record(n) for n in range(first, first + 3)], 0)
    offsets = lambda start, limit: [c.offset for c in topics.read(place(name), start, limit)]  # noqa: E731
    assert offsets(0, 5) == [0, 1, 2, 3, 4]
    assert offsets(4, 7) == list(range(4, 11))
    assert offsets(28, 100) == [28, 29]
    assert offsets(30, 5) == []
    assert offsets(1000, 5) == []
    assert offsets(0, 0) == []
    assert offsets(-5, 2) == [0, 1]


def test_offsets_at_a_time(topics: Topics, name: str) -> None:
    topics.create(name, 2)
    topics.append(name, [record(n) for n in (0, 10, 20)], 0)
    topics.append(name, [record(n) for n in (30, 40)], 0)
    at = lambda n: topics.offsets_at(name, AT + n)[place(name, 0)]  # noqa: E731
    assert [at(-5), at(0), at(1), at(10), at(20), at(25), at(40), at(41)] == [0, 0, 1, 1, 2, 3, 4, 5]
    assert topics.offsets_at(name, AT)[place(name, 1)] == 0


def test_offsets_at_a_time_when_times_are_out_of_order(topics: Topics, name: str) -> None:
    topics.create(name, 1)
    topics.append(name, [record(n) for n in (50, 10, 60, 20)], 0)
    assert topics.offsets_at(name, AT + 55)[place(name)] == 2
    assert topics.offsets_at(name, AT + 61)[place(name)] == 4


def test_end_offsets_of_many_topics(topics: Topics, name: str) -> None:
    other = f"{name}.dead"
    topics.create(name, 2)
    topics.create(other, 1)
    topics.append(other, [record(1)])
    assert topics.end_offsets([name, other]) == {place(name, 0): 0, place(name, 1): 0, place(other): 1}
    assert topics.end_offsets([]) == {}


def test_progress_of_readers(topics: Topics, name: str) -> None:
    topics.create(name, 2)
    topics.append(name, [record(n) for n in range(10)], 0)
    reader = f"reader-{name}"
    assert topics.progress(reader, [name]) == {}
    topics.commit_progress(reader, {place(name, 0): 4})
    topics.commit_progress(reader, {place(name, 1): 0})
    topics.commit_progress(reader, {place(name, 0): 7})
    assert topics.progress(reader, [name]) == {place(name, 0): 7, place(name, 1): 0}
    topics.commit_progress(reader, {place(name, 0): 2})  # a rewind is allowed
    assert topics.progress(reader, [name])[place(name, 0)] == 2
    other = f"{name}.other"
    topics.create(other, 1)
    topics.commit_progress(reader, {place(other): 3})
    assert topics.progress(reader, [other, "not-there"]) == {place(other): 3}
    assert topics.progress(reader, []) == {}
    said = [(r.reader, r.place, r.offset) for r in topics.readers(name) if r.reader == reader]
    assert said == [(reader, place(name, 0), 2), (reader, place(name, 1), 0)]


def test_readers_of_a_topic_come_by_name(topics: Topics, name: str) -> None:
    topics.create(name, 1)
    for reader in ("zeta", "alpha"):
        topics.commit_progress(f"{reader}-{name}", {place(name): 0})
    assert [r.reader for r in topics.readers(name)] == [f"alpha-{name}", f"zeta-{name}"]


def test_a_reader_is_forgotten_in_all_topics_and_others_stay(topics: Topics, name: str) -> None:
    other = f"{name}.other"
    topics.create(name, 2)
    topics.create(other, 1)
    gone, kept = f"gone-{name}", f"kept-{name}"
    for reader in (gone, kept):
        topics.commit_progress(reader, {place(name, 1): 3, place(other): 4})
    assert topics.forget_reader(gone)
    assert topics.progress(gone, [name, other]) == {}
    assert topics.progress(kept, [name, other]) == {place(name, 1): 3, place(other): 4}
    assert [r.reader for t in (name, other) for r in topics.readers(t)] == [kept, kept]
    assert not topics.forget_reader(gone)
    topics.commit_progress(gone, {place(name, 0): 1})  # it may come again
    assert topics.progress(gone, [name, other]) == {place(name, 0): 1}


def test_wrong_progress_is_refused(topics: Topics, name: str) -> None:
    topics.create(name, 1)
    with pytest.raises(SpecError, match="reader"):
        topics.commit_progress("", {place(name): 1})
    with pytest.raises(SpecError, match="offset"):
        topics.commit_progress("r", {place(name): -1})
    assert topics.readers(name) == []


def test_a_deleted_topic_is_gone_and_may_come_again(topics: Topics, name: str) -> None:
    topics.create(name, 2)
    topics.append(name, [record(n) for n in range(5)])
    topics.delete(name)
    assert name not in topics.topics()
    with pytest.raises(MissingError):
        topics.end_offsets([name])
    assert topics.create(name, 3)
    assert topics.end_offsets([name]) == {place(name, n): 0 for n in range(3)}
    assert topics.readers(name) == []


def test_records_from_a_generator_that_fails_leave_nothing(topics: Topics, name: str) -> None:
    topics.create(name, 1)

    def failing() -> object:
        yield record(1)
        raise ValueError("the caller's own")

    with pytest.raises(ValueError, match="the caller's own"):
        topics.append(name, failing())  # type: ignore[arg-type]
    assert topics.end_offsets([name]) == {place(name): 0}
