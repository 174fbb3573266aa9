"""How an owner declares topics and jobs in Python, and how such a file becomes a `PipelineSpec` and its
functions.

Declaring never touches Spark: a pipeline file is loaded by tools that have no session. Nothing is global
across loads: declarations land in the registry of the load that runs them, or nowhere when a file is imported
by hand.
"""

from penstock.authoring.check import check_pipeline
from penstock.authoring.declare import (
    DeclaredJob,
    Sink,
    Source,
    Topic,
    WithMetadata,
    job,
    sink,
    source,
    topic,
    with_metadata,
)
from penstock.authoring.loader import Pipeline, load_pipeline

__all__ = [
    "DeclaredJob",
    "Pipeline",
    "Sink",
    "Source",
    "Topic",
    "WithMetadata",
    "check_pipeline",
    "job",
    "load_pipeline",
    "sink",
    "source",
    "topic",
    "with_metadata",
]
