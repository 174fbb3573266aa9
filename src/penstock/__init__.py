"""Penstock: streaming pipelines on Spark that measure themselves and take the right size.

What a pipeline file needs stands here. Names load when they are first used, so that `import penstock` costs
nothing in a Spark worker and never brings in Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.authoring import job, sink, source, topic, with_metadata

__version__ = "0.1.0"
__all__ = ["job", "sink", "source", "topic", "with_metadata"]


def __getattr__(name: str) -> object:
    if name in __all__:
        from penstock import authoring

        return getattr(authoring, name)
    raise AttributeError(f"module 'penstock' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
