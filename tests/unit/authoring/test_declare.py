"""The words of a pipeline file: what each makes, and that each refusal names field, value, place and remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock.authoring import job, sink, source, topic, with_metadata
from penstock.authoring.registry import Registry, collecting
from penstock.model.errors import SpecError
from penstock.model.jobs import JobSpec, ScalingKnobs

HERE = "test_declare.py:"


def declared(declare: Callable[[], Any]) -> Registry:
    with collecting() as registry:
        declare()
    return registry


def only_job(declare: Callable[[], Any]) -> JobSpec:
    (entry,) = declared(declare).jobs
    return entry.spec


def refusal(declare: Callable[[], Any]) -> SpecError:
    """The error, which names everything that a person needs."""
    with pytest.raises(SpecError) as caught, collecting():
        declare()
    error = caught.value
    assert HERE in error.place and error.place.rsplit(":", 1)[1].isdigit()
    assert str(error).startswith(f"{error.place}: {error.field} = {error.value!r} ")
    assert error.problem and error.remedy and str(error).endswith(f"; {error.remedy}.")
    return error


# Topics


def test_a_topic_has_its_columns_units_and_place() -> None:
    registry = declared(
        lambda: topic(
            "words",
            "word string, at timestamp",
            key="word",
            partitions=3,
            event_time="at",
            watermark="1m",
            retention="2h",
            retention_bytes="1MB",
            on_bad_record="fail",
        )
    )
    (spec,) = registry.topics
    assert (spec.name, spec.key, spec.partitions, spec.codec) == ("words", "word", 3, "json")
    assert (spec.watermark_seconds, spec.retention_seconds, spec.retention_bytes) == (60.0, 7_200.0, 1 << 20)
    assert spec.on_bad_record == "fail" and HERE in spec.place


def test_a_watermark_is_ten_seconds_where_there_is_an_event_time() -> None:
    with collecting():
        assert topic("a", "at timestamp", event_time="at").spec.watermark_seconds == 10.0
        assert topic("a", "at timestamp").spec.watermark_seconds is None


@pytest.mark.parametrize(
    ("declare", "field"),
    [
        (lambda: topic("no name", "n long"), "topic"),
        (lambda: topic("a", "n lon"), "schema"),
        (lambda: topic("a", ""), "schema"),
        (lambda: topic("a", "n long", partitions=0), "partitions"),
        (lambda: topic("a", "n long", codec="xml"), "codec"),  # type: ignore[arg-type]
        (lambda: topic("a", "n long", on_bad_record="ignore"), "on_bad_record"),
        (lambda: topic("a", "n long", watermark="5s"), "watermark"),
        (lambda: topic("a", "t timestamp", event_time="t", watermark="soon"), "watermark"),
        (lambda: topic("a", "n long", retention="-1s"), "retention"),
        (lambda: topic("a", "n long", retention=0), "retention"),
        (lambda: topic("a", "n long", retention_bytes="many"), "retention_bytes"),
    ],
)
def test_a_topic_that_cannot_be_is_refused(declare: Callable[[], Any], field: str) -> None:
    assert refusal(declare).field == field


# Jobs


def test_a_decorated_function_stays_what_it_was() -> None:
    @job(reads="a", writes="b")
    def double(frame: int) -> int:
        return 2 * frame

    assert double(21) == 42


def test_a_job_has_inputs_outputs_options_and_place() -> None:
    def declare() -> None:
        a = topic("a", "n long")

        @job(
            reads=[a, with_metadata("b")],
            writes=["c", sink("noop")],
            slo_lag="1m",
            trigger="500ms",
            mode="update",
        )
        def both(x: Any, y: Any) -> Any: ...

    spec = only_job(declare)
    assert spec.name == "both" and HERE in spec.place and spec.sql is None
    assert [(i.topic, i.metadata, i.view) for i in spec.inputs] == [("a", False, "a"), ("b", True, "b")]
    assert [o.label for o in spec.outputs] == ["c", "noop"]
    options = spec.options
    assert (options.slo_lag_seconds, options.interval_seconds, options.output_mode) == (60.0, 0.5, "update")


def test_frames_are_given_by_name_where_they_are_named() -> None:
    def declare() -> None:
        @job(reads={"left": "a", "right": "b"}, writes="c")
        def minus(right: int, left: int) -> int:
            return left - right

    (entry,) = declared(declare).jobs
    assert entry.function is not None and entry.function(10, 3) == 7
    assert [i.view for i in entry.spec.inputs] == ["left", "right"]


def test_sql_is_a_job_by_itself() -> None:
    spec = only_job(lambda: job(reads="my-topic", writes="b", sql="select * from my_topic", name="copy"))
    assert (spec.name, spec.sql, spec.inputs[0].view) == ("copy", "select * from my_topic", "my_topic")


def test_sources_and_sinks_keep_their_options_as_spark_takes_them() -> None:
    given = source("csv", "n long", static=True, header=True, options={"path": "x", "n": 5})
    assert given.spec.options == {"path": "x", "n": "5", "header": "true"} and given.spec.static

    def each(frame: Any, batch_id: int) -> None: ...

    def declare() -> None:
        @job(reads="a", writes=sink(foreach_batch=each))
        def x(frame: Any) -> Any: ...

    (entry,) = declared(declare).jobs
    assert entry.foreach is each and entry.spec.outputs[0].label == "foreachBatch"


def test_knobs_may_be_given_whole_or_by_name() -> None:
    def declare() -> None:
        @job(reads="a", writes="b", scaling={"policy_interval": "5s", "warm_up_windows": 1})
        def by_name(x: Any) -> Any: ...

        @job(reads="a", writes="c", scaling=ScalingKnobs(warm_up_windows=2))
        def whole(x: Any) -> Any: ...

    first, second = (entry.spec.options.scaling for entry in declared(declare).jobs)
    assert (first.policy_interval_seconds, first.warm_up_windows) == (5.0, 1)
    assert (second.policy_interval_seconds, second.warm_up_windows) == (10.0, 2)


def test_what_was_not_given_starts_inside_its_limits() -> None:
    def declare() -> None:
        @job(reads="a", writes="b", min_threads=4, min_tasks=2)
        def x(frame: Any) -> Any: ...

    options = only_job(declare).options
    assert (options.threads, options.tasks) == (4, 2)


def _job(**more: Any) -> Callable[[], Any]:
    def declare() -> None:
        @job(**{"reads": "a", "writes": "b", **more})
        def x(frame: Any) -> Any: ...

    return declare


def _two_each() -> Any:
    def each(frame: Any, batch_id: int) -> None: ...

    return [sink(foreach_batch=each), sink(foreach_batch=each)]


@pytest.mark.parametrize(
    ("declare", "field"),
    [
        (_job(slo_lagg="1s"), "slo_lagg"),
        (_job(slo_lag="soon"), "slo_lag"),
        (_job(slo_lag="0s"), "slo_lag"),
        (_job(trigger="1s", interval="2s"), "interval"),
        (_job(threads=0), "threads"),
        (_job(mode="all"), "mode"),
        (_job(min_threads=9, max_threads=3), "min_threads"),
        (_job(scaling={"warm_ups": 1}), "scaling.warm_ups"),
        (_job(scaling={"policy_interval": "soon"}), "scaling.policy_interval"),
        (_job(scaling={"target_ratio": 2}), "scaling.target_ratio"),
        (_job(reads=[]), "reads"),
        (_job(writes=[]), "writes"),
        (_job(reads=5), "reads"),
        (_job(writes=5), "writes"),
        (_job(writes=_two_each()), "writes"),
        (_job(reads=["a", "c"]), "job"),
        (_job(reads={"other": "a"}), "job"),
        (_job(name="no name"), "job"),
        (lambda: job(reads="a", writes="b", sql="select 1", name="9"), "job"),
        (lambda: sink(), "sink"),
        (lambda: sink("x", foreach_batch=print), "sink"),
        (lambda: sink(foreach_batch=5), "foreach_batch"),  # type: ignore[arg-type]
        (lambda: source("csv", "n lon"), "schema"),
    ],
)
def test_a_job_that_cannot_be_is_refused(declare: Callable[[], Any], field: str) -> None:
    assert refusal(declare).field == field


def test_the_nearest_option_is_offered() -> None:
    assert "'slo_lag'" in refusal(_job(slo_lagg="1s")).remedy
    assert "'threads'" in refusal(_job(thread=1)).remedy


def test_outside_a_load_declarations_land_nowhere() -> None:
    @job(reads=topic("a", "n long"), writes="b")
    def x(frame: int) -> int:
        return frame

    with collecting() as registry:
        pass
    assert registry.jobs == [] and registry.topics == [] and x(1) == 1


def test_loads_inside_each_other_do_not_mix() -> None:
    with collecting() as outer:
        topic("a", "n long")
        with collecting() as inner:
            topic("b", "n long")
        topic("c", "n long")
    assert [t.name for t in outer.topics] == ["a", "c"] and [t.name for t in inner.topics] == ["b"]


def test_a_keyword_that_a_topic_does_not_have_is_refused_with_the_nearest() -> None:
    error = refusal(lambda: topic("a", schema="n long", retension="7d"))
    assert error.field == "retension" and error.remedy == "the nearest is 'retention'"
    assert "partitions" in refusal(lambda: topic("a", schema="n long", zzz=1)).remedy


def test_a_decorator_without_its_words_says_how_to_write_it() -> None:
    def bare() -> Any:
        @job  # type: ignore[call-overload]
        def copy(rows: Any) -> Any:
            return rows

        return copy

    error = refusal(bare)
    assert error.value == "copy" and "does not say what it reads and writes" in error.problem
    assert "@job(reads=TOPIC, writes=TOPIC)" in error.remedy
    one = refusal(lambda: job(reads="a"))  # type: ignore[call-overload]
    assert one.problem == "does not say what it writes"
    front = refusal(lambda: job(print, reads="a", writes="b"))  # type: ignore[call-overload]
    assert "above the function" in front.remedy
