"""Pipelines of many operators and what was measured of them, made from a seed: what the decision's benchmark decides on.

Chains of ten jobs, each job with a hundred instances whose costs differ a little, sized as it should be: the usual
round, in which everything is read and weighed and nothing changes.
"""

from __future__ import annotations

from array import array

import numpy as np

from penstock.model.jobs import Input, JobOptions, JobSpec, Output, PipelineSpec
from penstock.model.observations import (
    CostMoments,
    InstanceColumns,
    JobWindow,
    Observation,
    StageSample,
)
from penstock.model.topics import TopicSpec

CHAIN, INSTANCES = 10, 100
WINDOW_SECONDS, BATCHES = 10.0, 5
OVERHEAD_SECONDS = 0.1
RECORD_SECONDS = 0.01
RATE_PER_SECOND = 9_360.0
"""What each chain's source produces: 98.5 threads of work for each job of its chain, at an L of 2 s."""


def make_fleet(operators: int) -> PipelineSpec:
    """Chains of ten jobs, joined by topics."""
    places = [divmod(number, CHAIN) for number in range(operators)]
    options = JobOptions(threads=INSTANCES)
    jobs = tuple(
        JobSpec(
            name=f"c{chain}-j{link}",
            inputs=(Input(topic=f"c{chain}-t{link}"),),
            outputs=(Output(topic=f"c{chain}-t{link + 1}"),),
            options=options,
        )
        for chain, link in places
    )
    names = dict.fromkeys(topic for job in jobs for topic in (*job.input_topics, *job.output_topics))
    return PipelineSpec(
        name="fleet", topics=tuple(TopicSpec(name=name, columns="n long") for name in names), jobs=jobs
    )


def make_observations(pipeline: PipelineSpec, rounds: int, seed: int = 1) -> list[Observation]:
    """One observation a round, a window apart, each with a new window of every job."""
    random = np.random.default_rng(seed)
    return [_observe(pipeline, random, 1_000.0 + WINDOW_SECONDS * n) for n in range(rounds)]


def _observe(pipeline: PipelineSpec, random: np.random.Generator, at: float) -> Observation:
    written = {topic for job in pipeline.jobs for topic in job.output_topics}
    read = {topic for job in pipeline.jobs for topic in job.input_topics}
    threads = {job.name: INSTANCES for job in pipeline.jobs}
    return Observation(
        at=at,
        windows={job.name: _window(job, random, at) for job in pipeline.jobs},
        threads=threads,
        source_rates=dict.fromkeys(read - written, RATE_PER_SECOND),
        slots=sum(threads.values()),
        backlog=dict.fromkeys(threads, 0.0),
    )


def _window(job: JobSpec, random: np.random.Generator, at: float) -> JobWindow:
    taken = RATE_PER_SECOND * WINDOW_SECONDS
    shares = random.uniform(0.99, 1.01, INSTANCES)
    records = taken * shares / shares.sum()
    useful = records * RECORD_SECONDS * random.uniform(0.99, 1.01, INSTANCES)
    useful *= taken * RECORD_SECONDS / useful.sum()
    columns = InstanceColumns(array("d", records), array("d", records), array("d", useful))
    r, n, u = taken / BATCHES, float(INSTANCES), taken * RECORD_SECONDS / BATCHES
    stage = StageSample(
        ordinal=0,
        spark_tasks=INSTANCES * BATCHES,
        ceiling=None,
        useful_seconds=u * BATCHES,
        records_in=taken,
        records_out=taken,
        longest_seconds=float(useful.max()) / BATCHES,
        instances=columns,
        moments=CostMoments(
            BATCHES, taken, n * BATCHES, u * BATCHES, *(BATCHES * x / u for x in (r * r, r * n, n * n))
        ),
    )
    (source,), (target,) = job.input_topics, job.output_topics
    return JobWindow(
        job=job.name,
        generation=0,
        threads=INSTANCES,
        started_at=at - WINDOW_SECONDS,
        ended_at=at,
        batches=BATCHES,
        records_in={source: taken},
        records_out={target: taken},
        stages=(stage,),
        overhead_seconds=OVERHEAD_SECONDS,
        batch_seconds=OVERHEAD_SECONDS + u / INSTANCES,
        production_rates={source: RATE_PER_SECOND},
        backlog={source: 0.0},
        backlog_before={source: 0.0},
    )
