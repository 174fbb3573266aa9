"""The small scenes of the scaling manager's tests: a job under the sizing strategy, and what it says of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fleets import Fleet, Pilot, make_job, make_pipeline, one_stage, proposal_of
from penstock.core.controller.strategy import strategy_named
from penstock.model.jobs import ScalingKnobs
from penstock.model.observations import Observation

COST = one_stage(0.001)
"""1,000 records a second for each thread."""


def knobs(**changes: Any) -> ScalingKnobs:
    return ScalingKnobs(**{"warm_up_windows": 0, "min_change": 0, **changes})


def one_job(rate: float, threads: int = 1, scaling: ScalingKnobs | None = None, **options: Any) -> Fleet:
    job = make_job("x", ["a"], scaling=scaling or knobs(), **options)
    return Fleet(make_pipeline(job), {"x": COST}, {}, {"a": rate}, {"x": threads})


def calm(seen: Observation) -> Observation:
    """Nothing waits anywhere."""
    return replace(seen, backlog=dict.fromkeys(seen.threads, 0.0))


def pilot_of(fleet: Fleet) -> Pilot:
    return Pilot(strategy_named("penstock"), fleet)


def reason(pilot: Pilot, job: str = "x") -> str:
    return proposal_of(pilot.decisions[-1], job).reason
