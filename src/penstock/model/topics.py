"""What a topic is, as its owner declares it."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from penstock.model.ids import check_name

Codec = Literal["json", "string", "raw", "avro"]


class TopicSpec(BaseModel):
    """A durable, ordered, partitioned log between jobs, with the columns that its records carry."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    columns: str = Field(description="columns of a record, as Spark DDL", examples=["word string, n long"])
    key: str | None = Field(
        default=None,
        description="column whose value becomes the record's key; records of one key stay in order in one partition",
    )
    codec: Codec = Field(default="json", description="how a record's value holds the columns")
    partitions: int = Field(
        default=8,
        ge=1,
        le=10_000,
        description="partitions when the topic is made; the ceiling of a job's tasks",
    )
    event_time: str | None = Field(
        default=None, description="timestamp column that says when a record happened"
    )
    watermark_seconds: float | None = Field(
        default=None,
        ge=0,
        description="how much later than the newest event time a record may come (seconds); needs event_time",
    )
    retention_seconds: float | None = Field(
        default=None, gt=0, description="records older than this may be dropped (seconds); none keeps them"
    )
    retention_bytes: int | None = Field(
        default=None,
        gt=0,
        description="per partition, the oldest records past this size may be dropped (bytes); none keeps them",
    )
    on_bad_record: Literal["dead_letter", "fail"] = Field(
        default="dead_letter",
        description="a record that does not parse goes to the dead-letter topic, or stops the job",
    )

    place: str = Field(default="", description="file:line of the declaration")

    @field_validator("name")
    @classmethod
    def _name(cls, value: str) -> str:
        return check_name("topic", value)

    @property
    def dead_letter(self) -> str:
        """The topic that takes this topic's records that do not parse."""
        return f"{self.name}.dead"
