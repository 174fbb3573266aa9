"""The job graph of a pipeline: who feeds whom through topics, in an order that decisions can walk.

Sources, sinks, diamonds and disconnected parts are all fine; a cycle is refused, naming its jobs.
"""

from __future__ import annotations

from collections.abc import Mapping

from penstock.model.errors import SpecError
from penstock.model.jobs import PipelineSpec


def upstream_jobs(pipeline: PipelineSpec) -> Mapping[str, tuple[str, ...]]:
    """Per job, the jobs that write a topic it reads, each once, in declaration order."""
    writers: dict[str, list[str]] = {}
    for job in pipeline.jobs:
        for topic in job.output_topics:
            writers.setdefault(topic, []).append(job.name)
    return {
        job.name: tuple(dict.fromkeys(w for topic in job.input_topics for w in writers.get(topic, ())))
        for job in pipeline.jobs
    }


def order_jobs(pipeline: PipelineSpec) -> tuple[str, ...]:
    """Every job after all that feed it (declaration order where free); a cycle is a `SpecError` that names it."""
    above = upstream_jobs(pipeline)
    done: dict[str, None] = {}
    waiting = [job.name for job in pipeline.jobs]
    while waiting:
        ready = [name for name in waiting if all(up in done for up in above[name])]
        if not ready:
            raise SpecError(
                "pipeline",
                pipeline.name,
                f"has a cycle: {' -> '.join(_cycle(above, waiting))}",
                "let one of these jobs write another topic",
                pipeline.job(waiting[0]).place,
            )
        done.update(dict.fromkeys(ready))
        waiting = [name for name in waiting if name not in done]
    return tuple(done)


def source_topics(pipeline: PipelineSpec) -> tuple[str, ...]:
    """Topics that some job reads and none writes."""
    written = {topic for job in pipeline.jobs for topic in job.output_topics}
    read = dict.fromkeys(topic for job in pipeline.jobs for topic in job.input_topics)
    return tuple(topic for topic in read if topic not in written)


def _cycle(above: Mapping[str, tuple[str, ...]], waiting: list[str]) -> list[str]:
    """Walk upstream among jobs that wait for each other until one comes again."""
    path = [waiting[0]]
    while True:
        before = next(up for up in above[path[-1]] if up in waiting)
        if before in path:
            return [before, *reversed(path[path.index(before) :])]
        path.append(before)
