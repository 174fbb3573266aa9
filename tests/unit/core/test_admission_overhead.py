"""A trigger interval shorter than the overhead of a batch must not starve the job."""

from __future__ import annotations

from penstock.core.sizing.admission import Admission, limit_records, observe_batch
from penstock.model.ids import TaskId
from penstock.model.observations import BatchSample, StageSample


def _batch(number: int, records: int, overhead: float, per_record: float) -> BatchSample:
    useful = records * per_record
    stage = StageSample(0, 1, None, useful, records, records, longest_seconds=useful, elapsed_seconds=useful)
    return BatchSample(
        task=TaskId("copy", 0),
        generation=1,
        epoch=1,
        batch_id=number,
        started_at=float(number),
        duration_seconds=overhead + useful,
        stage_seconds=useful,
        threads=1,
        records_in={"in": float(records)},
        records_out={"out": float(records)},
        bytes_in=0.0,
        bytes_out=0.0,
        stages=(stage,),
    )


def test_an_overhead_bound_job_takes_batches_worth_their_overhead() -> None:
    admission = Admission()
    for number in range(20):
        records = limit_records(admission, 1) or 1
        admission = observe_batch(admission, _batch(number, records, 0.3, 0.0001), 0.05, 30.0)
    seconds = 0.0001 * (limit_records(admission, 1) or 0)
    assert 0.6 <= seconds <= 0.9 + 1e-6  # at most three overheads of work beside the one of overhead


def test_it_still_keeps_to_half_the_lag_that_its_owner_accepts() -> None:
    admission = Admission()
    for number in range(20):
        records = limit_records(admission, 1) or 1
        admission = observe_batch(admission, _batch(number, records, 0.3, 0.0001), 0.05, 1.0)
    assert 0.3 + 0.0001 * (limit_records(admission, 1) or 0) <= 0.5 + 1e-6
