"""All that can be known to be wrong without Spark, each at the line that it is about."""

from __future__ import annotations

from typing import Any

import pytest

from penstock.authoring.check import check_spec
from penstock.model.errors import SpecError
from penstock.model.jobs import Input, JobOptions, JobSpec, Output, PipelineSpec, SinkSpec, SourceSpec
from penstock.model.topics import TopicSpec


def topic(name: str, columns: str = "n long", **more: Any) -> TopicSpec:
    return TopicSpec(name=name, columns=columns, place=f"p.py:{len(name)}", **more)


def job(
    name: str = "x", reads: tuple[str, ...] = ("a",), writes: tuple[str, ...] = ("b",), **more: Any
) -> JobSpec:
    fields: dict[str, Any] = {
        "inputs": tuple(Input(topic=t, view=t) for t in reads),
        "outputs": tuple(Output(topic=t) for t in writes),
        "place": "p.py:90",
        **more,
    }
    return JobSpec(name=name, **fields)


def problems(topics: list[TopicSpec], jobs: list[JobSpec]) -> list[SpecError]:
    found = check_spec(PipelineSpec(name="p", topics=tuple(topics), jobs=tuple(jobs)))
    for error in found:
        assert error.field and error.problem and error.remedy and error.place.startswith("p.py:")
        assert str(error).startswith(f"{error.place}: {error.field} = {error.value!r} {error.problem}; ")
    return found


A, B = topic("a"), topic("b")
STATIC = Input(source=SourceSpec(format="csv", static=True))


def test_a_sound_pipeline_has_no_problem() -> None:
    assert problems([A, B], [job()]) == []
    assert problems([A], [job(writes=(), outputs=(Output(sink=SinkSpec(format="noop")),))]) == []


def test_tasks_share_a_sink_only_where_it_knows_them_apart() -> None:
    two, several = JobOptions(tasks=2, threads=2), topic("a", partitions=4)

    def found(sink: SinkSpec, options: JobOptions) -> list[SpecError]:
        return problems([several], [job(writes=(), outputs=(Output(sink=sink),), options=options)])

    by_spark, by_owner = SinkSpec(format="parquet"), SinkSpec(format="foreach_batch", function=True)
    assert [(e.field, e.value) for e in found(by_spark, two)] == [("tasks", 2)]
    assert "one parquet sink" in str(found(by_spark, two)[0])
    assert found(by_spark, JobOptions(threads=2)) == [] and found(by_owner, two) == []


@pytest.mark.parametrize(
    ("topics", "jobs", "field", "words"),
    [
        ([A, A.model_copy(update={"place": "p.py:7"}), B], [job()], "topic", "is declared twice"),
        ([A, topic("a", "m long"), B], [job()], "topic", "different columns or settings"),
        ([A, B, topic("a.dead")], [job()], "topic", "dead-letter topic of 'a'"),
        ([A, B, topic("c")], [job(), job(writes=("c",))], "job", "is declared twice"),
        ([topic("a", key="m"), B], [job()], "key", "is no column"),
        ([topic("a", event_time="t"), B], [job()], "event_time", "is no column"),
        ([topic("a", event_time="n"), B], [job()], "event_time", "no point in time"),
        ([topic("a", "n lon"), B], [job()], "schema", "Spark does not know"),
        ([topic("a", codec="string"), B], [job()], "codec", "cannot hold"),
        ([topic("a", "v string, w string", codec="string"), B], [job()], "codec", "cannot hold"),
        ([topic("a", "v string", codec="raw"), B], [job()], "codec", "cannot hold"),
        ([A, B], [job(reads=("aa",))], "reads", "nobody declares"),
        ([A], [job(writes=("bb",))], "writes", "nobody declares"),
        ([A, B], [job(outputs=(Output(topic="b"), Output(topic="b")))], "writes", "stands 2 times"),
        (
            [A, B],
            [job(inputs=(Input(topic="a", view="v"), Input(topic="a", view="v")), sql="select 1")],
            "reads",
            "stands 2 times",
        ),
        ([B], [job(inputs=(STATIC,))], "reads", "only static inputs"),
        (
            [topic("a", "_key string"), B],
            [job(inputs=(Input(topic="a", metadata=True),))],
            "reads",
            "already has the column _key",
        ),
        ([A, B], [job(options=JobOptions(threads=9, max_threads=4))], "threads", "outside its limits"),
        ([A, B], [job(options=JobOptions(tasks=40, max_tasks=32))], "tasks", "outside its limits"),
        (
            [topic("a", partitions=2), B],
            [job(options=JobOptions(tasks=3))],
            "tasks",
            "more than the partitions",
        ),
        (
            [A, B],
            [job(options=JobOptions(interval_seconds=30, slo_lag_seconds=30))],
            "slo_lag",
            "not above the trigger",
        ),
        ([A, B], [job(writes=("a",))], "pipeline", "x -> x"),
    ],
)
def test_one_problem_one_error(topics: list[TopicSpec], jobs: list[JobSpec], field: str, words: str) -> None:
    found = [e for e in problems(topics, jobs) if e.field == field]
    assert len(found) >= 1 and words in found[0].problem


def test_every_problem_is_found_at_once() -> None:
    found = problems([topic("a", key="m"), B], [job(reads=("z",)), job("y", writes=("w",))])
    assert [e.field for e in found] == ["key", "reads", "writes"]


def test_a_static_side_of_a_join_is_fine() -> None:
    assert problems([A, B], [job(inputs=(Input(topic="a", view="a"), STATIC))]) == []


def test_codecs_that_fit_are_fine() -> None:
    fitting = [topic("a", "v string", codec="string"), topic("b", "v binary", codec="raw")]
    assert problems(fitting, [job()]) == []


def test_the_nearest_topic_is_offered() -> None:
    (error,) = problems([topic("sentences"), B], [job(reads=("sentence",))])
    assert "'sentences'" in error.remedy


def test_constructed_limits_that_contradict_are_found() -> None:
    options = JobOptions.model_construct(**{**JobOptions().model_dump(), "min_threads": 9, "max_threads": 4})
    (error,) = problems([A, B], [job().model_copy(update={"options": options})])
    assert (error.field, error.value) == ("min_threads", 9)
