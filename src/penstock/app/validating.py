"""`penstock validate`: everything that can be known to be wrong with a pipeline before it runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from penstock.app.parts import container_settings, job_codes
from penstock.app.settings import Settings, load_settings
from penstock.authoring import Pipeline, check_pipeline, load_pipeline
from penstock.model.errors import SpecError
from penstock.model.status import Check, problem_of


def validate(file: Path, profile: str | None, env: Mapping[str, str]) -> list[Check]:
    """All findings. Functions are analysed by Spark on frames without records, once all else is in order."""
    try:
        pipeline = load_pipeline(file)
        settings = load_settings(pipeline.folder, profile, env)
        declared = set(map(str, check_pipeline(pipeline)))
        pipeline = pipeline.tuned(settings.defaults, settings.jobs, settings.place, settings.job_places)
    except SpecError as error:
        return [problem_of(error)]
    found = [
        problem_of(error if str(error) in declared else error.at(set_at(error, pipeline, settings)))
        for error in check_pipeline(pipeline)
    ]
    if found:
        return found
    from penstock.spark.session import start_session, stop_session
    from penstock.spark.validation import analyse_jobs

    session = start_session(container_settings(settings, "validate"))
    try:
        return [*_topics(pipeline), *analyse_jobs(session, job_codes(pipeline))]
    finally:
        stop_session(session)


def set_at(error: SpecError, pipeline: Pipeline, settings: Settings) -> str:
    """Where a problem stands that the declaration alone does not have: in the settings."""
    job = next((job.name for job in pipeline.spec.jobs if job.place == error.place), "")
    return settings.job_places.get(job, settings.place)


def _topics(pipeline: Pipeline) -> list[Check]:
    return [
        Check(
            f"topic {topic.name}",
            "ok",
            f"{topic.columns}; {topic.partitions} partitions, {topic.codec}"
            + (f", key {topic.key}" if topic.key else ""),
            place=topic.place,
        )
        for topic in pipeline.spec.topics
    ]
