"""The family `spark`: what Penstock does on real Spark, each benchmark beside its peer in the same run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from penstock.bench.log_speed import LogBench
from penstock.bench.managed import ManagedBench
from penstock.bench.probe_cost import ProbeBench
from penstock.bench.reaction import ReactionBench
from penstock.bench.streams import StreamsBench
from penstock.bench.wordcount import wordcount_benches
from penstock.ports.services import Bench, Services


def spark_benches(services: Services, write_demo: Callable[[Path], Path]) -> Sequence[Bench]:
    """All of them, in the order in which they run; `write_demo` writes the demo's project into a folder."""
    return (
        ProbeBench(),
        ManagedBench(services),
        LogBench(services),
        StreamsBench(),
        ReactionBench(),
        *wordcount_benches(write_demo, services),
    )
