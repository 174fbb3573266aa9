"""What running jobs did since they were last asked: the probe, seen from a loop."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from penstock.model.observations import BatchSample, ContainerSample, PartitionSample


@dataclass(frozen=True, slots=True)
class Measured:
    """One collection. Batches may be late, doubled or out of order."""

    batches: tuple[BatchSample, ...]
    partitions: tuple[PartitionSample, ...]
    """Each topic partition as each job sees it now."""
    container: ContainerSample | None


class Measurements(Protocol):
    def collect(self, now: float) -> Measured:
        """All that was measured since the last call, and where partitions stand now."""
        ...
