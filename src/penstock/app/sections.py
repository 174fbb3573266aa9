"""The settings there are: each with its unit, default and reason. `penstock init` and docs/settings.md print them.

Job options have their own home in model/jobs.py; where values come from and how they are laid is for settings.py.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, field_validator, model_validator

_LEAST_HEAP_BYTES = 512 << 20
_MASTER = re.compile(r"^(local|yarn|spark://[^\s:]+:\d+(,[^\s:]+:\d+)*|k8s://\S+)$")


def _split_commas(value: object) -> object:
    """A list, also as text with commas (environment, command line)."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def split_pairs(value: object) -> object:
    """A map, also as text `a=1,b=2`; `true` and `false` as Spark writes them."""
    if isinstance(value, str):
        parts = [part.strip() for part in value.split(",") if part.strip()]
        wrong = next((part for part in parts if not part.partition("=")[1]), None)
        if wrong is not None:
            raise ValueError(f"has {wrong!r}, which is not name=value; write it like name=value,other=value")
        value = dict(part.split("=", 1) for part in parts)
    if isinstance(value, Mapping):
        pairs = cast("Mapping[object, object]", value)
        return {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in pairs.items()}
    return value


Texts = Annotated[tuple[str, ...], BeforeValidator(_split_commas)]
Pairs = Annotated[Mapping[str, str], BeforeValidator(split_pairs)]


class ProjectSettings(BaseModel):
    """What the project is."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str | None = Field(default=None, description="name shown for its runs; none takes the pipeline's")
    profile: str = Field(default="embedded", description="profile used when a command names none")


class BusSettings(BaseModel):
    """Where topics live."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["log", "kafka"] = Field(
        default="log",
        description='"log": files in the work folder, one host, nothing to install; "kafka": brokers at `servers`',
    )
    servers: str = Field(
        default="localhost:9092", description="Kafka's bootstrap servers, host:port with commas between"
    )
    client: Pairs = Field(
        default_factory=dict[str, str],
        description="kafka: settings of its clients by Kafka's names, like security.protocol, sasl.mechanism, "
        "sasl.username; a value env:NAME is read from the environment, so that no secret stands here",
    )
    read_by: Literal["auto", "penstock", "spark"] = Field(
        default="auto",
        description="kafka: who plans the reading; spark's own source works with any connector, but takes other threads "
        "only at a restart",
    )
    durable: bool = Field(
        default=True,
        description="sync each checkpoint, and each commit of the embedded log, to disk; false is faster and may lose the "
        "newest ones at a power cut",
    )

    @field_validator("servers")
    @classmethod
    def _servers(cls, value: str) -> str:
        for server in value.split(","):
            if not re.fullmatch(r"\s*(\[[0-9a-fA-F:]+\]|[^\s:,]+):\d{1,5}\s*", server):
                raise ValueError("has a server that is not host:port; write it like localhost:9092")
        return value


class StoreSettings(BaseModel):
    """Where a run keeps what it must not lose."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: str = Field(
        default=".penstock",
        description="checkpoints, journals of runs, logs and the embedded log; relative to this file",
    )
    journal_bytes: int = Field(
        default=64 << 20,
        ge=1 << 20,
        description="bound of one run's journal. A small pipeline writes about 10 MB an hour: what changed something "
        "stays, the newest quarter stays whole, older samples are thinned",
    )

    @field_validator("folder")
    @classmethod
    def _folder(cls, value: str) -> str:
        if not value.strip():
            raise ValueError("is empty; name a folder, like .penstock")
        return value


class SparkSettings(BaseModel):
    """What the Spark application is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    master: str = Field(
        default="local",
        description='"local": one JVM in this process tree; else a master\'s address, like spark://host:7077',
    )
    slots: int = Field(
        default=32,
        ge=1,
        le=1024,
        description="local: threads that all jobs share. More than cores, since threads often wait (for Python, disks, "
        "services); what the CPU can really carry is measured",
    )
    heap_bytes: int = Field(
        default=1 << 30,
        description="heap of each JVM. Penstock keeps state in RocksDB and Python data in Python workers, both outside it",
    )
    jars: Texts = Field(
        default=(),
        description="jars beside ours (Kafka's connector): files or patterns, relative to this file",
    )
    packages: Texts = Field(
        default=(), description="Maven packages that Spark fetches itself, as group:artifact:version"
    )
    conf: Pairs = Field(
        default_factory=dict[str, str], description="any other Spark setting, by Spark's own name"
    )

    @field_validator("master")
    @classmethod
    def _master(cls, value: str) -> str:
        if value.startswith("local") and value != "local":
            raise ValueError('is local with a number of threads; write master = "local" and set spark.slots')
        if not _MASTER.match(value):
            raise ValueError("is no Spark master; write local, spark://host:port, yarn or k8s://...")
        return value

    @field_validator("heap_bytes")
    @classmethod
    def _heap(cls, value: int) -> int:
        if value < _LEAST_HEAP_BYTES:
            raise ValueError('is too small for Spark to start; give at least "512m"')
        return value

    @field_validator("packages")
    @classmethod
    def _packages(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for package in value:
            if not re.fullmatch(r"[^\s:]+:[^\s:]+:[^\s:]+", package):
                raise ValueError(f"has {package!r}; write group:artifact:version")
        return value

    @property
    def heap(self) -> str:
        """As Spark writes it: `1024m`."""
        return f"{self.heap_bytes >> 20}m"

    @property
    def local(self) -> bool:
        return self.master == "local"


class ExecutorSettings(BaseModel):
    """Executors of a container on a Spark master: they come and go as jobs need slots."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    min: int = Field(
        default=1, ge=1, description="fewest executors: the last one never goes, or nothing would run"
    )
    max: int = Field(default=8, ge=1, description="most executors: what the pipeline may take of the cluster")
    slots: int = Field(
        default=2,
        ge=1,
        le=1024,
        description="slots of each executor: small ones follow the need more closely",
    )

    @model_validator(mode="after")
    def _bounds(self) -> ExecutorSettings:
        if self.min > self.max:
            raise ValueError(
                f"min = {self.min} is above max = {self.max}; lower the first or raise the second"
            )
        return self


SECTIONS: Mapping[str, type[BaseModel]] = {
    "project": ProjectSettings,
    "bus": BusSettings,
    "store": StoreSettings,
    "spark": SparkSettings,
    "executors": ExecutorSettings,
}
