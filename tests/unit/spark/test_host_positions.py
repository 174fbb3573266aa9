"""What a host says of partitions whose topics have not answered yet."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from penstock.model.ids import TaskId, TopicPartition
from penstock.spark.host import positions_of
from penstock.spark.slots import Slot
from penstock.spark.starting import HostedJob

PLACES = (TopicPartition("in", 0), TopicPartition("in", 1))


def test_an_end_that_is_not_known_is_not_told_as_zero() -> None:
    code: Any = SimpleNamespace(spec=SimpleNamespace(name="copy"))
    slot = Slot(TaskId("copy", 0), PLACES, 0, committed={PLACES[0]: 3})
    job = HostedJob(code, cast("Any", None), [slot], cast("Any", None), False)
    assert positions_of(job, 1.0) == []
    job.ends = {PLACES[0]: 10}
    (sample,) = positions_of(job, 2.0)
    assert (sample.place, sample.end, sample.committed) == (PLACES[0], 10, 3)
