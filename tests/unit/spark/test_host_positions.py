"""What a host says of partitions: asked for together, and nothing of those whose topics have not answered yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

from penstock.model.errors import EnvironmentProblem, MissingError, PenstockError
from penstock.model.ids import TaskId, TopicPartition
from penstock.spark.host import ask_ends, positions_of
from penstock.spark.slots import Slot
from penstock.spark.starting import HostedJob


class Topics:
    """Topics of one partition each, with their ends; counts the questions."""

    def __init__(self, ends: Mapping[str, int], broken: PenstockError | None = None) -> None:
        self.ends, self.broken = ends, broken
        self.asked: list[list[str]] = []

    def end_offsets(self, topics: Sequence[str]) -> dict[TopicPartition, int]:
        self.asked.append(list(topics))
        if self.broken is not None:
            raise self.broken
        if gone := [name for name in topics if name not in self.ends]:
            raise MissingError(f"There is no topic {gone[0]}.")
        return {TopicPartition(name, 0): self.ends[name] for name in topics}


def hosted(name: str, topics: Topics, *reads: str) -> HostedJob:
    code: Any = SimpleNamespace(spec=SimpleNamespace(name=name, input_topics=reads))
    return HostedJob(code, cast("Any", SimpleNamespace(topics=topics)), [], cast("Any", None), False)


def test_a_broker_is_asked_once_for_all_jobs() -> None:
    topics, other = Topics({"a": 3, "b": 4}), Topics({"c": 5})
    jobs = [hosted("one", topics, "a"), hosted("two", topics, "b", "a"), hosted("three", other, "c")]
    ask_ends(jobs)
    assert topics.asked == [["a", "b"]] and other.asked == [["c"]]
    assert [sorted((place.topic, end) for place, end in job.ends.items()) for job in jobs] == [
        [("a", 3)],
        [("a", 3), ("b", 4)],
        [("c", 5)],
    ]


def test_a_broker_that_does_not_answer_is_waited_for_once_and_what_was_known_stays() -> None:
    topics = Topics({}, EnvironmentProblem("Kafka did not answer."))
    jobs = [hosted("one", topics, "a"), hosted("two", topics, "b")]
    jobs[0].ends = {TopicPartition("a", 0): 7}
    ask_ends(jobs)
    assert len(topics.asked) == 1 and (jobs[0].ends, jobs[1].ends) == ({TopicPartition("a", 0): 7}, {})


def test_a_topic_that_is_gone_is_no_matter_of_other_jobs() -> None:
    topics = Topics({"a": 3})
    jobs = [hosted("one", topics, "a"), hosted("two", topics, "gone")]
    ask_ends(jobs)
    assert (jobs[0].ends, jobs[1].ends) == ({TopicPartition("a", 0): 3}, {})


PLACES = (TopicPartition("in", 0), TopicPartition("in", 1))


def test_an_end_that_is_not_known_is_not_told_as_zero() -> None:
    code: Any = SimpleNamespace(spec=SimpleNamespace(name="copy"))
    slot = Slot(TaskId("copy", 0), PLACES, 0, committed={PLACES[0]: 3})
    job = HostedJob(code, cast("Any", None), [slot], cast("Any", None), False)
    assert positions_of(job, 1.0) == []
    job.ends = {PLACES[0]: 10}
    (sample,) = positions_of(job, 2.0)
    assert (sample.place, sample.end, sample.committed) == (PLACES[0], 10, 3)
