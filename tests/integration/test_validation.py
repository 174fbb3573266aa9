"""What Spark's analyser says of jobs before anything runs; what it refuses is a sentence at the start too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from penstock import job, topic
from penstock.model.errors import SpecError
from penstock.model.status import Check
from penstock.spark.validation import analyse_jobs
from worlds import INTERVAL, World

pytestmark = pytest.mark.spark


def declare(
    make: Callable[[Any], Any], *, outputs: tuple[str, ...] = ("out",), key: str | None = None, **options: Any
) -> Callable[[], None]:
    """A pipeline of one job from a topic (id, word) to topics with as many columns as it makes."""

    def declaring() -> None:
        source = topic("in", schema="id long, word string", key=key)
        targets = [topic(name, schema="word string, count long") for name in outputs]

        @job(reads=source, writes=targets, trigger=INTERVAL, **options)
        def counted(rows):
            return make(rows)

    return declaring


def copied(rows: Any) -> Any:
    return rows.selectExpr("word", "id as count")


def count(rows: Any) -> Any:
    return rows.groupBy("word").count()


def static(rows: Any) -> Any:
    return rows.sparkSession.createDataFrame([("a", 1)], "word string, count long")


def checks(world: World, declaring: Callable[[], None]) -> list[Check]:
    return analyse_jobs(world.spark, world.declare(declaring))


def test_a_job_that_is_fine_is_told_with_what_it_is(world: World) -> None:
    [stateless] = checks(world, declare(copied))
    [stateful] = checks(world, declare(count, mode="update"))
    assert (stateless.level, stateless.text) == ("ok", "in -> out; stateless")
    assert (stateful.level, stateful.text) == ("ok", "in -> out; keeps state")
    assert ":" in stateless.place


def misspelt(rows: Any) -> Any:
    return rows.selectExpr("wrod as word", "id as count")


REFUSED = [
    (misspelt, {}, "asks for the column 'wrod', which is not there", "use one that is: id, word"),
    (lambda rows: rows.select(rows.wrod), {}, "asks a frame for 'wrod'", "its inputs are id, word"),
    (lambda rows: rows.selectExpr("len1(word)"), {}, "the function 'len1', which Spark does not", "as a udf"),
    (lambda rows: rows + 1, {}, "raises TypeError: unsupported operand", "mend its function there"),
    (lambda rows: None, {}, "returns nothing where a frame is needed", "return the frame"),
    (
        count,
        {},
        "aggregates in mode 'append' without a watermark",
        'use mode="update", or give it a watermark',
    ),
    (copied, {"mode": "complete"}, "in mode 'complete': it does not aggregate", 'use mode="append"'),
    (lambda rows: copied(rows).orderBy("word"), {}, "Sorting is not supported", "leave out"),
    (static, {}, "gives out a static frame", "a stream among the job's inputs"),
]


@pytest.mark.parametrize(("make", "options", "words", "remedy"), REFUSED)
def test_what_spark_refuses_is_a_problem_with_a_remedy(
    world: World, make: Callable[[Any], Any], options: dict[str, Any], words: str, remedy: str, capfd: Any
) -> None:
    [found] = checks(world, declare(make, **options))
    assert found.level == "problem" and words in found.text and remedy in found.remedy
    assert found.name == "job counted" and found.place.split(":")[0].endswith("test_validation.py")
    assert found.remedy not in found.text and found.place not in found.text and "SQLSTATE" not in found.text
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(("make", "options", "words", "remedy"), REFUSED)
def test_the_same_is_said_where_it_is_started_unasked(
    world: World, make: Callable[[Any], Any], options: dict[str, Any], words: str, remedy: str
) -> None:
    with pytest.raises(SpecError) as told:
        world.run(declare(make, **options))
    assert words in str(told.value) and remedy in str(told.value)
    assert "test_validation.py:" in str(told.value) and "\n" not in str(told.value)


def test_the_owners_own_line_is_named(world: World) -> None:
    """Not the line of the declaration: the one that asked for what is not there."""
    [found] = checks(world, declare(misspelt))
    assert found.place.endswith(f":{misspelt.__code__.co_firstlineno + 1}")


def test_a_job_with_several_outputs_is_warned_of_its_cost(world: World) -> None:
    two = declare(lambda rows: {"a": copied(rows), "b": copied(rows)}, outputs=("a", "b"))
    fine, warning = checks(world, two)
    assert (fine.level, warning.level) == ("ok", "warning")
    assert "writes 2 topics: every branch reads its input again" in warning.text


def test_state_in_several_tasks_without_a_key_is_warned_of(world: World) -> None:
    fine, warning = checks(world, declare(count, mode="update", tasks=2, threads=2))
    assert (fine.level, warning.level) == ("ok", "warning")
    assert "keeps state in 2 tasks" in warning.text and "tasks=1" in warning.remedy
    assert len(checks(world, declare(count, key="word", mode="update", tasks=2, threads=2))) == 1


def test_one_jobs_problem_does_not_hide_anothers(world: World) -> None:
    def both() -> None:
        declare(static)()
        source, target = topic("more", schema="id long"), topic("less", schema="id long")

        @job(reads=source, writes=target, trigger=INTERVAL)
        def second(rows):
            return rows

    assert [check.level for check in checks(world, both)] == ["problem", "ok"]
