"""What the project's pipeline declares of a topic, where there is one: commands about topics then need fewer options."""

from __future__ import annotations

from pathlib import Path

from penstock.model.topics import TopicSpec
from penstock.ports.services import Services


def declared_topic(services: Services, project: Path, pipeline: Path | None, name: str) -> TopicSpec | None:
    """The topic's declaration in a pipeline that is named, or in the project's own; None where neither has it."""
    if pipeline is None and not (project / "pipeline.py").is_file():
        return None
    spec = services.load(pipeline or project)
    return next((topic for topic in spec.topics if topic.name == name), None)
