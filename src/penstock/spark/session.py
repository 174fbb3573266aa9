"""Starts Spark the way a container needs it: our jar, our checkpoints, lean settings, Java wherever it is.

One session in a process. A session that was made without our jar cannot take it later, so it is refused. Every setting
here was measured; the owner's own `conf` wins over all of them except those that make the jar work.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

import psutil
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession

from penstock.model.errors import EnvironmentProblem
from penstock.spark.java import find_java
from penstock.spark.refusals import quieten_spark

_users: dict[int, int] = {}
"""Who uses each session of this process: tests share one."""

STOP_SECONDS = 20
"""How long Spark waits for a query's thread that is to stop: the owner's own function may be deaf to interrupts."""
PLUGIN, LISTENER = "penstock.PenstockPlugin", "penstock.Probe"
CHECKPOINTS = "penstock.LocalCheckpoints"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

_LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = File
appender.file.name = file
appender.file.fileName = {file}
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss.SSS}} %p %c{{1}}: %m%n%ex
"""


@dataclass(frozen=True)
class ContainerSettings:
    """What one container (a Spark application) is made of."""

    work: Path
    """Folder for checkpoints, temporary files and logs."""
    master: str = "local"
    """`local` (this process's own JVM, with `slots` slots), or a Spark master's address."""
    slots: int = 8
    heap: str = "1g"
    """Heap of the driver's JVM; with a master, of each executor too."""
    jars: tuple[Path, ...] = ()
    """Jars beside ours: the Kafka connector's."""
    conf: Mapping[str, str] = field(default_factory=dict)
    sync: bool = False
    """Whether checkpoints reach the disk before a batch counts as committed."""
    executor_slots: int = 2
    executors_min: int = 1
    name: str = "penstock"

    @property
    def local(self) -> bool:
        return self.master.startswith("local")


def jar_path() -> Path:
    """The jar that ships in this package."""
    return Path(str(files("penstock.spark") / "jars" / "penstock-spark.jar"))


def start_session(settings: ContainerSettings) -> SparkSession:
    """The process's Spark session, made now or found fit; `EnvironmentProblem` says what is missing."""
    running = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if running is not None and running.sparkContext._jsc is not None:
        if PLUGIN not in (running.conf.get("spark.plugins", "") or ""):
            raise EnvironmentProblem(
                "This process already has a Spark session without penstock's jar, and a running session cannot load it; "
                "stop that session first, or let penstock make the first one."
            )
        _users[id(running.sparkContext)] = _users.get(id(running.sparkContext), 0) + 1
        return running
    _prepare_environment(settings)
    builder = SparkSession.builder.master(_master(settings)).appName(settings.name)
    for key, value in _conf(settings).items():
        builder = builder.config(key, value)
    try:
        session = _apart(builder.getOrCreate)
    except PySparkRuntimeError as error:
        raise _no_gateway(error, settings) from error
    ensure_callback_server_started(session.sparkContext._gateway)
    quieten_spark()
    _users[id(session.sparkContext)] = 1
    return session


def _apart(make: Callable[[], SparkSession]) -> SparkSession:
    """Made in a thread of its own: in the main thread PySpark takes Ctrl-C for itself, and would cancel what is to drain."""
    with ThreadPoolExecutor(1, thread_name_prefix="penstock-spark") as thread:
        return thread.submit(make).result()


def stop_session(session: SparkSession) -> None:
    """Let go of a session that `start_session` gave; the last to do so stops it."""
    place = id(session.sparkContext)
    left = _users.pop(place, 1) - 1
    if left > 0:
        _users[place] = left
        return
    with suppress(Exception):  # the JVM may be gone already
        session.stop()


def trouble_of(session: SparkSession) -> str:
    """Why nothing can run in a session any more, in a sentence; empty while it is well."""
    context = session.sparkContext
    process = getattr(context._gateway, "proc", None)
    code = None if process is None else process.poll()
    if code is not None:
        likely = "; the system killed it, most likely for want of memory" if code == -9 else ""
        return (
            f"Spark's JVM has ended (exit code {code}{likely}). What was committed is kept: run it again; "
            "`penstock doctor` looks at memory."
        )
    if context._jsc is None or context._jsc.sc().isStopped():
        return "Spark's application was stopped from outside. What was committed is kept: run it again."
    return ""


def waits_folder(settings: ContainerSettings) -> Path | None:
    """Where workers say how long they waited for a core; none where every slot has one."""
    slots = settings.slots if settings.local else settings.executor_slots
    mine = settings.work / "tmp" / f"waits-{os.getpid()}"
    return mine if slots > (os.cpu_count() or 1) else None


def _master(settings: ContainerSettings) -> str:
    return f"local[{settings.slots}]" if settings.master == "local" else settings.master


def _prepare_environment(settings: ContainerSettings) -> None:
    for name in ("logs", "tmp", "conf", "checkpoints"):
        (settings.work / name).mkdir(parents=True, exist_ok=True)
    for old in (settings.work / "tmp").glob(
        "waits-*"
    ):  # of processes that were killed; others may be running
        if not psutil.pid_exists(int(old.name.removeprefix("waits-"))):
            shutil.rmtree(old, ignore_errors=True)
    if waits := waits_folder(settings):
        waits.mkdir(parents=True, exist_ok=True)
        os.environ["PENSTOCK_WAITS"] = str(waits)
    java = find_java(settings.work)
    os.environ["JAVA_HOME"] = str(java.path)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    # A newcomer's file of defaults elsewhere must not change what was measured here.
    os.environ["SPARK_CONF_DIR"] = str(settings.work / "conf")
    (settings.work / "conf" / "log4j2.properties").write_text(
        _LOG4J.format(file=settings.work / "logs" / "spark.log")
    )


def _conf(settings: ContainerSettings) -> dict[str, str]:
    conf = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": settings.heap,
        "spark.executor.memory": settings.heap,
        "spark.executor.cores": str(settings.executor_slots),
        "spark.local.dir": str(settings.work / "tmp"),
        "spark.sql.warehouse.dir": str(settings.work / "tmp" / "warehouse"),
        "spark.scheduler.mode": "FAIR",
        "spark.locality.wait": "0",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.shuffle.partitions": "8",
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        "spark.sql.streaming.checkpoint.fileChecksum.enabled": "false",
        "spark.sql.streaming.numRecentProgressUpdates": "10",
        "spark.sql.streaming.metricsEnabled": "false",
        "spark.sql.streaming.stopTimeout": f"{STOP_SECONDS}s",
        "spark.sql.ui.retainedExecutions": "1",
        "spark.ui.retainedJobs": "10",
        "spark.ui.retainedStages": "10",
        "spark.ui.retainedTasks": "100",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.python.daemon.module": "penstock.spark.daemon",
        "spark.python.worker.reuse": "true",
        "spark.cleaner.periodicGC.interval": "10min",
    }
    if settings.local:
        conf["spark.sql.streaming.checkpointFileManagerClass"] = CHECKPOINTS
    else:
        conf |= _elastic_executors(settings)
    if waits := waits_folder(settings):
        conf["spark.executorEnv.PENSTOCK_WAITS"] = str(waits)
    conf |= dict(settings.conf)
    jars = [str(jar_path()), *map(str, settings.jars), *filter(None, [conf.get("spark.jars", "")])]
    conf["spark.jars"] = ",".join(jars)
    conf["spark.plugins"] = ",".join(filter(None, [PLUGIN, settings.conf.get("spark.plugins", "")]))
    conf["spark.extraListeners"] = ",".join(
        filter(None, [LISTENER, settings.conf.get("spark.extraListeners", "")])
    )
    sync = f"-Dpenstock.checkpoint.sync={str(settings.sync).lower()}"
    # A deep stack: stopping a foreachBatch query overflows the default one.
    for name, ours in (("driver", f"-Xss8m -XX:+UseG1GC {sync}"), ("executor", sync)):
        key = f"spark.{name}.extraJavaOptions"
        conf[key] = f"{ours} {conf.get(key, '')}".strip()
    return conf


def _elastic_executors(settings: ContainerSettings) -> dict[str, str]:
    """Executors come and go by our request alone: Spark's own time-outs are a year."""
    year = "31536000s"
    return {
        "spark.dynamicAllocation.enabled": "true",
        "spark.dynamicAllocation.shuffleTracking.enabled": "true",
        "spark.dynamicAllocation.minExecutors": str(settings.executors_min),
        "spark.dynamicAllocation.initialExecutors": str(settings.executors_min),
        "spark.dynamicAllocation.maxExecutors": "1000",
        "spark.dynamicAllocation.schedulerBacklogTimeout": year,
        "spark.dynamicAllocation.executorIdleTimeout": year,
        "spark.dynamicAllocation.shuffleTracking.timeout": year,
        "spark.decommission.enabled": "true",
        "spark.sql.streaming.checkpointFileManagerClass": CHECKPOINTS,
    }


def _no_gateway(error: PySparkRuntimeError, settings: ContainerSettings) -> EnvironmentProblem:
    missing = [jar for jar in settings.jars if not jar.is_file()]
    if missing:
        return EnvironmentProblem(
            f"The jar {missing[0]} is not there; run `penstock kafka-jars`, or name another in spark.jars."
        )
    packages = settings.conf.get("spark.jars.packages")
    if packages:
        return EnvironmentProblem(
            f"Spark could not start with spark.jars.packages = {packages!r}: one of them could not be fetched; "
            "check the names and versions, or give the jars themselves (`penstock kafka-jars`)."
        )
    log = settings.work / "logs" / "spark.log"
    return EnvironmentProblem(
        f"Spark's JVM did not start ({error}); `penstock doctor` checks Java, {log} may say more."
    )


def jvm(session: SparkSession) -> Any:
    """The JVM as py4j sees it."""
    return session.sparkContext._jvm
