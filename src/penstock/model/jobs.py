"""What a job is, as its owner declares it: inputs, outputs and options. The function itself is not here.

Each option has a type, a unit, a default and a reason; `penstock init` and the docs print them from here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from penstock.model.ids import check_name
from penstock.model.topics import TopicSpec


class ScalingKnobs(BaseModel):
    """The scaling manager's settings for one job (DS2 4.2.1-4.2.2)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy_interval_seconds: float = Field(
        default=10.0,
        gt=0,
        description="how often a decision is made, and the length of a window: long is steady, short is quick",
    )
    warm_up_windows: int = Field(
        default=3, ge=0, description="windows ignored after an action, while rates settle"
    )
    activation_windows: int = Field(
        default=1,
        ge=1,
        description="proposals in a row that a decision combines; more for work that comes in bursts, like windows that fire",
    )
    activation: Literal["median", "max"] = Field(
        default="max", description="how those proposals are combined"
    )
    min_change: int | None = Field(
        default=None,
        ge=0,
        description="smaller changes are noise (threads); default 1 above 10 threads, else 0",
    )
    max_ineffective: int = Field(
        default=3, ge=1, description="actions in a row with less than 5% gain before it stops and alerts"
    )
    target_ratio: float = Field(
        default=0.98,
        gt=0,
        le=1,
        description="share of the target that must be achieved before the target is corrected upwards",
    )
    roll_back_loss: float = Field(
        default=0.10,
        gt=0,
        lt=1,
        description="an action that lowers capacity by more than this share at equal demand is undone",
    )
    scale_in_share: float = Field(
        default=0.8,
        gt=0,
        le=1,
        description="scale in only when the need is below this share of what runs: room against swinging",
    )


class JobOptions(BaseModel):
    """Everything about a job that may be tuned without touching its function."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    interval_seconds: float = Field(
        default=2.0,
        gt=0,
        description="trigger interval: a batch starts this often (seconds); shorter is fresher, longer wastes less on overhead",
    )
    output_mode: Literal["append", "update", "complete"] = Field(
        default="append", description="which rows of a stateful result are written; as in Spark"
    )
    slo_lag_seconds: float = Field(
        default=30.0, gt=0, description="the largest time_lagged its owner accepts (seconds)"
    )
    priority: int = Field(
        default=0, ge=-100, le=100, description="who grows first when room is short: higher"
    )
    scalable: bool = Field(
        default=True, description="false: its function can't be split over more threads, so it is passed over"
    )
    tasks: int = Field(
        default=1,
        ge=1,
        le=1000,
        description="queries that share the job's partitions, each with its own checkpoint",
    )
    min_tasks: int = Field(default=1, ge=1, description="fewest tasks")
    max_tasks: int = Field(
        default=32, ge=1, description="most tasks: the quota of a job that is not privileged"
    )
    threads: int = Field(default=1, ge=1, description="threads of the whole job at the start")
    min_threads: int = Field(default=1, ge=1, description="fewest threads of the whole job")
    max_threads: int = Field(default=1024, ge=1, description="most threads of the whole job")
    max_records_per_batch: int | None = Field(
        default=None,
        gt=0,
        description="owner's limit on a batch (records); none leaves it to measured capacity",
    )
    max_bytes_per_batch: int | None = Field(
        default=None, gt=0, description="owner's limit on a batch (bytes)"
    )
    ordered: bool = Field(
        default=False,
        description="true: a partition is never split over threads, so records of a key keep their order inside the function",
    )
    exactly_once: bool = Field(
        default=False,
        description="Kafka output in transactions, sent from the driver (the embedded log is exactly-once anyway)",
    )
    state_partitions: int = Field(
        default=8,
        ge=1,
        description="partitions of built-in stateful operators: the ceiling of their threads; fixed while state lives",
    )
    scaling: ScalingKnobs = Field(default_factory=ScalingKnobs, description="the scaling manager's knobs")

    @model_validator(mode="after")
    def _ordered_bounds(self) -> JobOptions:
        for low, high in (("min_tasks", "max_tasks"), ("min_threads", "max_threads")):
            if getattr(self, low) > getattr(self, high):
                raise ValueError(
                    f"{low} = {getattr(self, low)} is above {high} = {getattr(self, high)}; lower the first or raise the second"
                )
        return self


class SourceSpec(BaseModel):
    """A Spark streaming source that is no topic, by format and options."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str
    options: Mapping[str, str] = Field(default_factory=dict)
    columns: str | None = Field(default=None, description="columns as Spark DDL, where the format needs them")
    static: bool = Field(
        default=False, description="read as a table, not as a stream: the other side of a stream-static join"
    )


class SinkSpec(BaseModel):
    """A Spark streaming sink that is no topic. `function` marks a foreachBatch whose code lives in the user's module."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: str
    options: Mapping[str, str] = Field(default_factory=dict)
    function: bool = False


class Input(BaseModel):
    """One argument of a job's function: a topic by name, or a source."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str | None = None
    metadata: bool = Field(
        default=False, description="add the columns _key, _partition, _offset, _timestamp, _headers"
    )
    source: SourceSpec | None = None
    view: str = Field(default="", description="the name under which SQL sees it")

    @property
    def label(self) -> str:
        return self.topic or (self.source.format if self.source else "?")


class Output(BaseModel):
    """One output of a job: a topic by name, or a sink."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str | None = None
    sink: SinkSpec | None = None

    @property
    def label(self) -> str:
        return self.topic or (self.sink.format if self.sink else "?")


class JobSpec(BaseModel):
    """One streaming computation: input topics -> a PySpark transformation -> output topics or a sink."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    inputs: tuple[Input, ...]
    outputs: tuple[Output, ...]
    options: JobOptions = Field(default_factory=JobOptions)
    sql: str | None = None
    place: str = Field(default="", description="file:line of the declaration")

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        return check_name("job", value)

    @property
    def input_topics(self) -> tuple[str, ...]:
        """Each topic once, in the order read."""
        return tuple(dict.fromkeys(i.topic for i in self.inputs if i.topic))

    @property
    def output_topics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(o.topic for o in self.outputs if o.topic))


class PipelineSpec(BaseModel):
    """A connected set of jobs joined by topics, as its files declare it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    topics: tuple[TopicSpec, ...]
    jobs: tuple[JobSpec, ...]

    def topic(self, name: str) -> TopicSpec:
        return next(t for t in self.topics if t.name == name)

    def job(self, name: str) -> JobSpec:
        return next(j for j in self.jobs if j.name == name)
