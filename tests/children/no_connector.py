"""A container whose Spark lacks Kafka's connector, asked for a job on Kafka: prints what that job's owner is told.

python no_connector.py FOLDER
"""

from __future__ import annotations

import sys
from pathlib import Path

from penstock.adapters.memory import MemoryTopics
from penstock.model.errors import PenstockError
from penstock.model.jobs import Input, JobSpec, Output
from penstock.spark.executors import FixedSlots
from penstock.spark.frames import JobCode
from penstock.spark.host import Host
from penstock.spark.kafka import KafkaBus
from penstock.spark.session import ContainerSettings, start_session


def main() -> None:
    folder = Path(sys.argv[1])
    session = start_session(ContainerSettings(work=folder / "work", slots=1, heap="512m"))
    spec = JobSpec(name="copy", inputs=(Input(topic="in"),), outputs=(Output(topic="out"),))
    try:
        Host(session, folder / "checkpoints", FixedSlots(1)).add(
            JobCode(spec, {}, None, None), KafkaBus(MemoryTopics(), {})
        )
    except PenstockError as error:
        print(f"{type(error).__name__}: {error}", flush=True)
    session.stop()


if __name__ == "__main__":
    main()
