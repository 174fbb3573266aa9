"""Hypothesis strategies for values of the model: costs, pipelines, fleets. In one place, so that tests draw alike."""

from __future__ import annotations

from hypothesis import strategies as st

from fleets import Fleet, make_job, make_pipeline
from penstock.core.sizing.batch_time import JobCost, StageCost
from penstock.model.jobs import JobSpec

MANY = 100_000
"""Threads that no drawn demand needs."""

following_stages = st.builds(StageCost, st.floats(1e-6, 1e-2), st.floats(0.0, 0.05))
"""Stages that follow threads."""
fixed_stages = st.builds(
    StageCost, st.floats(1e-6, 1e-3), st.floats(0.0, 0.01), st.integers(1, 16), st.floats(0.0, 0.5)
)
"""Stages with a ceiling and, maybe, a piece that can't be split."""
any_stage = following_stages | fixed_stages
job_costs = st.builds(JobCost, st.floats(0.0, 3.0), st.lists(any_stage, min_size=1, max_size=4).map(tuple))
linear_costs = st.builds(
    lambda overhead, records: JobCost(overhead, tuple(StageCost(r) for r in records)),
    st.floats(0.0, 1.5),
    st.lists(st.floats(1e-5, 5e-3), min_size=1, max_size=3),
)
"""No ceilings, no pieces, no cost per task: DS2's perfect scaling."""


@st.composite
def linear_fleets(draw: st.DrawFn, jobs_most: int = 6) -> Fleet:
    """Random DAGs: several sources, joins, diamonds, several outputs, sinks, disconnected parts."""
    sources = [f"s{i}" for i in range(draw(st.integers(1, 3)))]
    known = list(sources)
    jobs: list[JobSpec] = []
    ratios: dict[tuple[str, str], float] = {}
    for i in range(draw(st.integers(1, jobs_most))):
        reads = draw(st.lists(st.sampled_from(known), min_size=1, max_size=3, unique=True))
        writes = [f"t{i}_{k}" for k in range(draw(st.integers(0, 2)))]
        jobs.append(make_job(f"j{i}", reads, writes, max_threads=MANY))
        ratios.update({(f"j{i}", t): draw(st.floats(0.05, 4.0)) for t in writes})
        known += writes
    return Fleet(
        pipeline=make_pipeline(*jobs),
        costs={job.name: draw(linear_costs) for job in jobs},
        ratios=ratios,
        rates={source: draw(st.floats(0.2, 2_000.0)) for source in sources},
        threads={job.name: draw(st.integers(1, 20)) for job in jobs},
    )


def true_demand(fleet: Fleet) -> dict[str, float]:
    """What each job must take in once all keep up: the graph walked by hand."""
    flow, demand = dict(fleet.rates), dict[str, float]()
    for job in fleet.pipeline.jobs:
        demand[job.name] = sum(flow[topic] for topic in job.input_topics)
        for topic in job.output_topics:
            flow[topic] = flow.get(topic, 0.0) + demand[job.name] * fleet.ratios[job.name, topic]
    return demand
