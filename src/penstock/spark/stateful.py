"""Does a job keep state? Read from Spark's own analysed plan, before anything runs.

A stateless job's tasks may be counted anew at any time; a stateful one's may not, since its state lies by task.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame

KEEPERS = frozenset(
    {
        "Aggregate",
        "Deduplicate",
        "DeduplicateWithinWatermark",
        "Distinct",
        "FlatMapGroupsWithState",
        "FlatMapGroupsInPandasWithState",
        "TransformWithState",
        "TransformWithStateInPySpark",
        "TransformWithStateInPandas",
        "GlobalLimit",
    }
)


def keeps_state(frame: DataFrame) -> bool:
    """True when a streaming part of the frame's plan aggregates, joins streams, deduplicates or keeps state by key."""
    return _any_keeper(frame._jdf.queryExecution().analyzed())


def _any_keeper(plan: Any) -> bool:
    if not plan.isStreaming():
        return False
    children = _children(plan)
    name = plan.getClass().getSimpleName()
    if name in KEEPERS or (name == "Join" and all(child.isStreaming() for child in children)):
        return True
    return any(_any_keeper(child) for child in children)


def _children(plan: Any) -> list[Any]:
    held = plan.children()
    return [held.apply(i) for i in range(held.size())]
