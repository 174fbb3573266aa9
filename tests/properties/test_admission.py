"""Admission against a small simulated job: batches within L, throughput near the best, whatever the threads do."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.sizing.admission import Admission, limit_records, observe_batch
from penstock.core.sizing.batch_time import (
    JobCost,
    StageCost,
    batch_seconds,
    largest_batch,
    objective_seconds,
)
from penstock.model.ids import TaskId
from penstock.model.observations import BatchSample, StageSample

INTERVAL, SLO = 2.0, 30.0
L = objective_seconds(INTERVAL, SLO)
UNTAUGHT = Admission()


@dataclass
class SimulatedJob:
    """Batches that cost what a `JobCost` says, times noise."""

    cost: JobCost
    noise: float
    seed: int
    waiting: float = math.inf

    def __post_init__(self) -> None:
        self._random = np.random.default_rng(self.seed)
        self._batches = 0

    def run(self, records: float, threads: int, slow: float = 1.0) -> BatchSample:
        """One batch; `slow` multiplies the useful time."""
        records = min(records, self.waiting)
        stages: list[StageSample] = []
        elapsed = 0.0
        for i, stage in enumerate(self.cost.stages):
            tasks = threads if stage.ceiling is None else stage.ceiling
            factor = slow * (1 + self.noise * self._random.uniform(-1, 1))
            useful = stage.useful_seconds(records, threads) * factor
            elapsed += stage.elapsed_seconds(records, threads) * factor
            longest = max(stage.unit_share, 1 / tasks) * useful
            stages.append(
                StageSample(i, tasks, stage.ceiling, useful, records, records, longest_seconds=longest)
            )
        self._batches += 1
        h = self.cost.overhead_seconds * (1 + self.noise * self._random.uniform(-1, 1))
        return BatchSample(
            task=TaskId("j", 0),
            generation=0,
            epoch=0,
            batch_id=self._batches,
            started_at=10.0 * self._batches,
            duration_seconds=elapsed + h,
            stage_seconds=elapsed,
            threads=threads,
            records_in={"t": records},
            records_out={},
            bytes_in=0.0,
            bytes_out=0.0,
            stages=tuple(stages),
        )


def _drive(
    job: SimulatedJob, threads: list[int], admission: Admission = UNTAUGHT
) -> tuple[Admission, list[BatchSample]]:
    samples: list[BatchSample] = []
    for k in threads:
        limit = limit_records(admission, k)
        assert limit is not None and limit >= 1
        samples.append(job.run(limit, k))
        admission = observe_batch(admission, samples[-1], INTERVAL, SLO)
    return admission, samples


follows = st.builds(StageCost, st.floats(1e-5, 1e-2), st.floats(0.0, 0.05))
fixed = st.builds(
    StageCost, st.floats(1e-6, 1e-3), st.floats(0.0, 0.01), st.integers(2, 16), st.floats(0.0, 0.4)
)
costs = st.builds(
    lambda h, first, rest: JobCost(h, (first, *rest)),
    st.floats(0.02, 0.6),
    follows,
    st.lists(fixed, max_size=2),
)
plans = st.lists(st.tuples(st.integers(1, 12), st.integers(6, 12)), min_size=1, max_size=6)


def _threads_of(plan: list[tuple[int, int]]) -> list[int]:
    return [k for k, batches in plan for _ in range(batches)]


@settings(max_examples=150)
@given(costs, plans, st.floats(0.0, 0.1), st.integers(0, 10_000))
def test_batches_keep_to_their_time_and_use_it(
    cost: JobCost, plan: list[tuple[int, int]], noise: float, seed: int
) -> None:
    threads = [plan[0][0]] * 16 + _threads_of(plan)
    _, samples = _drive(SimulatedJob(cost, noise, seed), threads)
    taken = best = 0.0
    for k, sample in list(zip(threads, samples, strict=True))[16:]:
        most = largest_batch(cost, L, k)
        assert sample.duration_seconds <= L * (1 + 2 * noise) + 0.05 * L
        taken += sample.records_in["t"] / max(L, sample.duration_seconds)
        best += most / L
    assert taken >= 0.9 * (1 - noise) * best


@given(costs, st.integers(1, 12), st.integers(0, 10_000), st.floats(3.0, 50.0))
def test_one_slow_batch_is_forgiven_at_once(cost: JobCost, k: int, seed: int, slow: float) -> None:
    job = SimulatedJob(cost, 0.02, seed)
    admission, _ = _drive(job, [k] * 20)
    before = limit_records(admission, k)
    assert before is not None
    after = observe_batch(admission, job.run(before, k, slow), INTERVAL, SLO)
    limit = limit_records(after, k)
    assert limit is not None and limit >= 0.9 * before - 1
    after, _ = _drive(job, [k] * 3, after)
    limit = limit_records(after, k)
    assert limit is not None and 0.85 * before - 2 <= limit <= 1.15 * before + 2


@given(costs, st.integers(1, 12), st.integers(0, 10_000))
def test_a_lasting_change_is_learnt_within_a_few_batches(cost: JobCost, k: int, seed: int) -> None:
    job = SimulatedJob(cost, 0.02, seed)
    admission, _ = _drive(job, [k] * 20)
    dearer = JobCost(
        cost.overhead_seconds,
        tuple(
            StageCost(3 * s.record_seconds, 3 * s.task_seconds, s.ceiling, s.unit_share) for s in cost.stages
        ),
    )
    changed = SimulatedJob(dearer, 0.02, seed + 1)
    changed._batches = job._batches
    _, samples = _drive(changed, [k] * 8, admission)
    room = L - dearer.overhead_seconds
    fixed_part = batch_seconds(dearer, 0.0, k)
    if fixed_part < 0.7 * room:
        assert samples[-1].duration_seconds <= 1.15 * L


@given(costs, st.integers(1, 8), st.floats(1.0, 50.0), st.integers(0, 10_000))
def test_a_job_that_keeps_up_does_not_creep(cost: JobCost, k: int, waiting: float, seed: int) -> None:
    job = SimulatedJob(cost, 0.1, seed, waiting=waiting)
    admission, _ = _drive(job, [k] * 15)
    first = limit_records(admission, k)
    admission, _ = _drive(job, [k] * 100, admission)
    last = limit_records(admission, k)
    assert first is not None and last is not None
    assert last <= 1.5 * largest_batch(cost, L, k) + 2 * waiting + 1
    assert last >= min(waiting, 0.5 * largest_batch(cost, L, k)) - 1


number = st.one_of(st.just(math.nan), st.just(math.inf), st.floats(-10, 10))


@given(number, number, number, number, number, st.integers(-1, 5))
def test_any_number_is_borne(
    records: float, duration: float, stage_seconds: float, useful: float, longest: float, tasks: int
) -> None:
    admission, _ = _drive(SimulatedJob(JobCost(0.1, (StageCost(0.001),)), 0.0, 1), [2] * 12)
    before = limit_records(admission, 2)
    for batch_id in range(100, 103):
        stage = StageSample(0, tasks, None, useful, records, records, longest_seconds=longest)
        sample = BatchSample(
            TaskId("j", 0),
            0,
            0,
            batch_id,
            0.0,
            duration,
            stage_seconds,
            2,
            {"t": records},
            {},
            0,
            0,
            (stage,),
        )
        admission = observe_batch(admission, sample, INTERVAL, SLO)
        limit = limit_records(admission, 2)
        assert limit is not None and limit >= 1
    admission, _ = _drive(SimulatedJob(JobCost(0.1, (StageCost(0.001),)), 0.0, 1), [2], admission)
    job = SimulatedJob(JobCost(0.1, (StageCost(0.001),)), 0.0, 1)
    job._batches = 200
    admission, _ = _drive(job, [2] * 16, admission)
    after = limit_records(admission, 2)
    assert before is not None and after is not None and 0.8 * before <= after <= 1.25 * before


def test_doubled_and_late_samples_teach_nothing() -> None:
    job = SimulatedJob(JobCost(0.1, (StageCost(0.001),)), 0.0, 1)
    admission, samples = _drive(job, [2] * 6)
    assert observe_batch(admission, samples[-1], INTERVAL, SLO) == admission
    assert observe_batch(admission, samples[0], INTERVAL, SLO) == admission
