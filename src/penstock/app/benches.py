"""Which benchmarks there are: joins those that measure pure code with those that need Spark."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.bench.decision import decision_benches
from penstock.model.errors import MissingError
from penstock.ports.services import Bench, Services

FAMILIES = ("spark", "decision")


def benches_of(family: str, services: Services) -> Sequence[Bench]:
    """The benchmarks of a family; a MissingError names the families there are."""
    if family == "decision":
        return decision_benches()
    if family == "spark":
        from penstock.app.demo_files import write_demo
        from penstock.bench.spark_family import spark_benches

        return [*spark_benches(services, write_demo), *decision_benches()]
    raise MissingError(
        f"There is no family of benchmarks {family!r} (there are: {', '.join(FAMILIES)}); name one of these."
    )
