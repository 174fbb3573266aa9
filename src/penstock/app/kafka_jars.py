"""Fetches the jars that Spark needs for Kafka: those of the installed Spark's version, else the set that was tried.

Rules: Maven where it is installed (it knows the user's repositories), else Spark's own resolver in a JVM of its own; the
tried set is the package's `connector.xml`, which our jar is compiled against; what was taken is said. A folder gets all
of a set or nothing.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from penstock.model.errors import EnvironmentProblem
from penstock.spark.java import find_java

CONNECTOR = "spark-sql-kafka-0-10_2.13"
_SHIPPED = (
    "org.apache.hadoop",
    "org.scala-lang",
    "org.slf4j",
    "org.lz4",
    "org.xerial.snappy",
    "com.github.luben",
)
"""Groups whose jars PySpark brings along."""
_UNUSED = ("com.google.code.findbugs",)
_SECONDS = 600.0


@dataclass(frozen=True)
class Artifact:
    """A jar in a Maven repository."""

    group: str
    name: str
    version: str

    def __str__(self) -> str:
        return f"{self.group}:{self.name}:{self.version}"


def fetch_kafka_jars(target: Path, progress: Callable[[str], None]) -> list[Path]:
    """The jars in `target`; an `EnvironmentProblem` says what to do when they cannot be had."""
    version = importlib.metadata.version("pyspark")
    tried = tried_set()
    matching = [Artifact("org.apache.spark", CONNECTOR, version)]
    fetch = _by_maven if shutil.which("mvn") else _by_spark
    reasons: list[str] = []
    for artifacts in [matching, tried] if str(matching[0]) != str(tried[0]) else [tried]:
        progress(f"Looking for Kafka's connector {artifacts[0].version} (Spark is {version}).")
        with tempfile.TemporaryDirectory() as folder:
            reason = fetch(artifacts, Path(folder))
            jars = sorted((Path(folder) / "jars").glob("*.jar"))
            if not reason and any(CONNECTOR in jar.name for jar in jars):
                progress(f"Taking {', '.join(jar.name for jar in jars)}.")
                return _put(jars, target)
        reasons.append(f"{artifacts[0].version}: {reason or 'no such version in the repositories'}")
        progress(f"Version {artifacts[0].version} is not to be had.")
    raise EnvironmentProblem(
        f"Kafka's connector could not be fetched ({'; '.join(reasons)}); check this machine's way to a Maven repository, "
        f"or copy these jars from another machine: {', '.join(map(str, tried))}."
    )


def tried_set() -> list[Artifact]:
    """The versions that were tried together, the connector first."""
    root = ET.fromstring((files("penstock.spark") / "jars" / "connector.xml").read_text(encoding="utf-8"))
    space = {"m": "http://maven.apache.org/POM/4.0.0"}
    found = [
        Artifact(*(each.findtext(f"m:{tag}", "", space) for tag in ("groupId", "artifactId", "version")))
        for each in root.findall("m:dependencies/m:dependency", space)
    ]
    return sorted(found, key=lambda artifact: artifact.name != CONNECTOR)


def _by_maven(artifacts: Sequence[Artifact], folder: Path) -> str:
    """Jars into `folder`/jars; why not, else empty."""
    pom = folder / "pom.xml"
    pom.write_text(_pom(artifacts), encoding="utf-8")
    goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder / 'jars'}"]
    return _run(["mvn", "-q", "-B", "-f", str(pom), *goal], {}, "[ERROR]")


def _pom(artifacts: Sequence[Artifact]) -> str:
    """One artifact brings what it needs and Spark lacks; several are taken as they are."""
    leave_out = [*_SHIPPED, *_UNUSED] if len(artifacts) == 1 else ["*"]
    excluded = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>*</artifactId></exclusion>" for group in leave_out
    )
    wanted = "".join(
        f"<dependency><groupId>{a.group}</groupId><artifactId>{a.name}</artifactId><version>{a.version}</version>"
        f"<exclusions>{excluded}</exclusions></dependency>"
        for a in artifacts
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>penstock</groupId><artifactId>jars</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>{wanted}</dependencies></project>"
    )


def _by_spark(artifacts: Sequence[Artifact], folder: Path) -> str:
    """The same by the resolver in Spark's own launcher, whose program is not there: it ends once all is fetched."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    env = {"SPARK_HOME": str(home), "JAVA_HOME": str(find_java(folder).path)}
    for artifact in artifacts:
        others = [f"{a.group}:{a.name}" for a in artifacts if a != artifact]
        excluded = ",".join([*others, *(f"{group}:*" for group in (*_SHIPPED, *_UNUSED))])
        command = [str(home / "bin" / "spark-submit"), "--packages", str(artifact)]
        command += ["--exclude-packages", excluded, "--conf", f"spark.jars.ivy={folder}"]
        command += [
            "--class",
            "penstock.Nothing",
            str(files("penstock.spark") / "jars" / "penstock-spark.jar"),
        ]
        reason = _run(command, env, "unresolved dependency")
        if not any(artifact.name in jar.name for jar in (folder / "jars").glob("*.jar")):
            return reason or f"{artifact} was not found"
    return ""


def _run(command: Sequence[str], env: dict[str, str], *telling: str) -> str:
    """Run a program; the first line of its words that tells why it failed, empty when it did not."""
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{Path(command[0]).name} did not end well: {error}"
    if done.returncode == 0:
        return ""
    lines = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    told = [line for line in lines if any(sign in line for sign in telling)]
    return (told or lines or [f"it ended with {done.returncode}"])[0][:300]


def _put(jars: Sequence[Path], target: Path) -> list[Path]:
    """Copies, each whole or not there."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        placed: list[Path] = []
        for jar in jars:
            path = target / jar.name
            partial = target / f".{jar.name}.part"
            shutil.copyfile(jar, partial)
            partial.replace(path)
            placed.append(path)
        return placed
    except OSError as error:
        raise EnvironmentProblem(
            f"The jars could not be written to {target} ({error.strerror}); choose another folder or mend its rights."
        ) from error
