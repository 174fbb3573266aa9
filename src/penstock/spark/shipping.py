"""The owner's functions travel to Spark's workers by value: their modules exist on this host only."""

from __future__ import annotations

from collections.abc import Iterable
from types import ModuleType

from pyspark import cloudpickle


def ship_by_value(modules: Iterable[ModuleType]) -> None:
    """Pickle everything of these modules by value from now on."""
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
