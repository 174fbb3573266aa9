"""Stages of many batches summed by ordinal, their instances kept side by side by position.

Rules: tasks of a job stand next to each other, batches of a task on top of each other; sums are sums, `longest_seconds`
is the mean over batches, a peak is a maximum; what tells costs per record and per Spark task apart leaves out cold
batches, in which workers started. Knows nothing of windows or rates.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Collection, Sequence

from penstock.core.sizing.costs import moments_of
from penstock.model.ids import TaskId
from penstock.model.observations import BatchSample, InstanceColumns, StageSample


def sum_stages(
    batches: Sequence[BatchSample], cold: Collection[tuple[TaskId, int]] = ()
) -> tuple[StageSample, ...]:
    """One stage for each ordinal that occurs, over all batches that had it; `cold`: (task, batch id) of cold ones."""
    ordinals = sorted({stage.ordinal for batch in batches for stage in batch.stages})
    return tuple(_sum_stage(ordinal, batches, cold) for ordinal in ordinals)


def _sum_stage(
    ordinal: int, batches: Sequence[BatchSample], cold: Collection[tuple[TaskId, int]]
) -> StageSample:
    rows = [(batch, stage) for batch in batches for stage in batch.stages if stage.ordinal == ordinal]
    stages = [stage for _, stage in rows]
    ceilings = {batch.task: stage.ceiling for batch, stage in rows}
    fixed = [c for c in ceilings.values() if c is not None]
    return StageSample(
        ordinal=ordinal,
        spark_tasks=sum(s.spark_tasks for s in stages),
        ceiling=sum(fixed) if len(fixed) == len(ceilings) else None,
        useful_seconds=math.fsum(s.useful_seconds for s in stages),
        records_in=math.fsum(s.records_in for s in stages),
        records_out=math.fsum(s.records_out for s in stages),
        bytes_in=math.fsum(s.bytes_in for s in stages),
        bytes_out=math.fsum(s.bytes_out for s in stages),
        fetch_wait_seconds=math.fsum(s.fetch_wait_seconds for s in stages),
        poll_wait_seconds=math.fsum(s.poll_wait_seconds for s in stages),
        blocked_output_seconds=math.fsum(s.blocked_output_seconds for s in stages),
        run_queue_wait_seconds=math.fsum(s.run_queue_wait_seconds for s in stages),
        gc_seconds=math.fsum(s.gc_seconds for s in stages),
        python_seconds=math.fsum(s.python_seconds for s in stages),
        scheduler_delay_seconds=math.fsum(s.scheduler_delay_seconds for s in stages),
        spilled_bytes=math.fsum(s.spilled_bytes for s in stages),
        peak_memory_bytes=max(s.peak_memory_bytes for s in stages),
        wasted_seconds=math.fsum(s.wasted_seconds for s in stages),
        longest_seconds=math.fsum(s.longest_seconds for s in stages) / len(stages),
        elapsed_seconds=math.fsum(s.elapsed_seconds for s in stages),
        instances=_sum_instances(rows),
        moments=moments_of(
            (math.fsum(batch.records_in.values()), stage)
            for batch, stage in rows
            if (batch.task, batch.batch_id) not in cold
        ),
    )


def _sum_instances(rows: Sequence[tuple[BatchSample, StageSample]]) -> InstanceColumns:
    columns = InstanceColumns(array("d"), array("d"), array("d"))
    for task in sorted({batch.task for batch, _ in rows}):
        mine = [stage.instances for batch, stage in rows if batch.task == task]
        width = max(len(instances) for instances in mine)
        records_in, records_out, useful = ([0.0] * width for _ in range(3))
        for instances in mine:
            for i, row in enumerate(instances):
                records_in[i] += row.records_in
                records_out[i] += row.records_out
                useful[i] += row.useful_seconds
        columns.records_in.extend(records_in)
        columns.records_out.extend(records_out)
        columns.useful_seconds.extend(useful)
    return columns
