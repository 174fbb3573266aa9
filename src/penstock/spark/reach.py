"""What executors on other hosts cannot reach: files of this one, as topics or as a job's state. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

CHECK_SECONDS = 1.0
"""How often a host asks where its executors are."""


def misplaced_log(hosts: Sequence[str]) -> str:
    """The sentence for an embedded log that executors cannot reach; empty when all are here."""
    if not hosts:
        return ""
    return (
        f"The embedded log lies on this host, and executors run on {', '.join(hosts)}; "
        'set bus.kind = "kafka" in the profile, or use a Spark master whose workers are on this host.'
    )


def misplaced_state(job: str, checkpoints: Path, hosts: Sequence[str]) -> str:
    """What to look at where executors elsewhere keep a job's state."""
    return (
        f"Job {job} keeps state, and executors run on {', '.join(hosts)}: they must see the folder {checkpoints} as this "
        "host does, or its state is lost when it moves; set store.folder to a folder that all hosts share."
    )
