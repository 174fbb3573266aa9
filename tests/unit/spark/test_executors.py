"""How many executors are asked of a Spark master, over a stand-in for the master: no Spark session."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from penstock.spark.executors import ElasticExecutors


class Master:
    """Gives what it is asked for; knows executors by number."""

    def __init__(self, executors: int) -> None:
        self.held = [str(i) for i in range(executors)]

    def getExecutorIds(self) -> Any:
        return SimpleNamespace(size=lambda: len(self.held), apply=lambda i: self.held[i])

    def requestTotalExecutors(self, total: int, *_: Any) -> None:
        self.held = [str(i) for i in range(max(total, len(self.held)))]

    def schedulerBackend(self) -> Any:
        return SimpleNamespace(decommissionExecutor=lambda id_, *_: self.held.remove(id_))

    def session(self) -> SparkSession:
        scala = SimpleNamespace(Option=SimpleNamespace(empty=lambda: None))
        jvm = SimpleNamespace(
            PythonUtils=SimpleNamespace(toScalaMap=dict),
            java=SimpleNamespace(util=SimpleNamespace(HashMap=dict)),
            scala=scala,
            org=SimpleNamespace(
                apache=SimpleNamespace(
                    spark=SimpleNamespace(scheduler=SimpleNamespace(ExecutorDecommissionInfo=lambda *_: None))
                )
            ),
        )
        context = SimpleNamespace(_jsc=SimpleNamespace(sc=lambda: self), _jvm=jvm)
        return cast("SparkSession", SimpleNamespace(sparkContext=context))


def settled(executors: ElasticExecutors) -> int:
    for _ in range(10):
        executors.settle()
    return executors.count()


@pytest.mark.parametrize(("least", "left"), [(1, 1), (3, 3)])
def test_the_least_number_alone_says_how_many_stay(least: int, left: int) -> None:
    executors = ElasticExecutors(Master(5).session(), 2, least, 8)
    executors.request(1)
    assert settled(executors) == left and executors.slots() == 2 * left


@pytest.mark.parametrize(("most", "had"), [(4, 4), (8, 6)])
def test_the_most_alone_says_how_many_may_come(most: int, had: int) -> None:
    executors = ElasticExecutors(Master(1).session(), 2, 1, most)
    executors.request(6)
    assert settled(executors) == had
