"""A Spark standalone master and its workers on loopback, as child processes: for trials, benchmarks and tests.

Rules: it listens on 127.0.0.1 only, on ports that the system picks; it ends with the process that started it, killed
or not, and its executors with it; where it can't start it says why in one sentence. Jars are pyspark's own, the Java
is the one that sessions take. A deployment brings its own master: nothing here is meant to last.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import pyspark

from penstock.model.errors import EnvironmentProblem
from penstock.spark.java import find_java

_START_SECONDS = 60.0
_POLL_SECONDS = 0.05
_JVM = ("-Xms32m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_MASTER, _WORKER = "org.apache.spark.deploy.master.Master", "org.apache.spark.deploy.worker.Worker"
_AT = re.compile(r"Starting Spark master at (spark://\S+)")
_JOINED = "Registering worker"
_LOG4J = """rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.master.name = org.apache.spark.deploy.master.Master
logger.master.level = info
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_OUT
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss.SSS} %p %c{1}: %m%n%ex
"""
_GUARD = (
    'exec 3<&0; "$@" </dev/null & child=$!; (cat <&3 >/dev/null; kill $child) & '
    "wait $child; status=$?; kill $! 2>/dev/null; exit $status"
)
"""Its input (as 3, since a shell gives what it starts beside itself an empty one) is a pipe that only the starting
process holds: when that process is gone, however it went, so is the child."""


@dataclass(frozen=True, slots=True)
class WorkerSize:
    """What one worker offers to executors."""

    slots: int = 8
    """May exceed the machine's cores, as a container's slots may."""
    memory: str = "4g"


class StandaloneCluster:
    """Use it as a context manager; `address` is what a session takes as its master."""

    def __init__(self, work: Path, workers: int = 1, size: WorkerSize | None = None) -> None:
        """`work`: a folder for logs and for what executors write."""
        self.address = ""
        self._work, self._workers, self._size = work, workers, size or WorkerSize()
        self._java = Path()
        self._children: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> StandaloneCluster:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the master, then its workers side by side; returns when all have joined."""
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        self._java = find_java(self._work).path
        (self._work / "conf").mkdir(parents=True, exist_ok=True)
        (self._work / "conf" / "log4j2.properties").write_text(_LOG4J)
        log, listen = self._work / "master.log", ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
        self._launch(log, _MASTER, *listen)
        self._await(log, lambda text: _AT.search(text) is not None)
        found = _AT.search(log.read_text())
        assert found is not None
        self.address = found.group(1)
        offer = ("--cores", str(self._size.slots), "--memory", self._size.memory)
        for number in range(self._workers):
            place = ("--work-dir", str(self._work / f"worker-{number}"), self.address)
            self._launch(self._work / f"worker-{number}.log", _WORKER, *listen, *offer, *place)
        self._await(log, lambda text: text.count(_JOINED) >= self._workers)

    def _launch(self, log: Path, main: str, *arguments: str) -> None:
        java = self._java
        home = Path(pyspark.__file__).parent
        logging = f"-Dlog4j2.configurationFile=file:{self._work / 'conf' / 'log4j2.properties'}"
        command = [str(java / "bin" / "java"), *_JVM, logging, "-Dspark.master.rest.enabled=false"]
        command += ["-cp", str(home / "jars" / "*"), main, *arguments]
        with log.open("wb") as out:
            self._children.append(
                subprocess.Popen(
                    ["/bin/sh", "-c", _GUARD, "guard", *command],
                    stdin=subprocess.PIPE,
                    stdout=out,
                    stderr=subprocess.STDOUT,
                    env=_environment(java, home, os.environ),
                    start_new_session=True,
                )
            )

    def _await(self, log: Path, ready: Callable[[str], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while not ready(log.read_text(errors="replace")):
            dead = [child for child in self._children if child.poll() is not None]
            if dead or time.monotonic() > deadline:
                how = "ended while it started" if dead else f"was not ready within {_START_SECONDS:.0f} s"
                raise EnvironmentProblem(
                    f"A Spark standalone master with {self._workers} worker(s) on 127.0.0.1 {how}; the logs in "
                    f"{self._work} say why, `penstock doctor` checks Java, memory and loopback."
                )
            time.sleep(_POLL_SECONDS)

    def close(self) -> None:
        """End workers, their executors, and the master."""
        for child in reversed(self._children):
            assert child.stdin is not None
            child.stdin.close()
        for child in self._children:
            try:
                child.wait(10.0)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait(10.0)
        self._children.clear()


def _environment(java: Path, home: Path, env: Mapping[str, str]) -> dict[str, str]:
    """Executors inherit it from their worker."""
    return {
        **env,
        "JAVA_HOME": str(java),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        # What Spark's own start scripts would set: a worker builds its executors' commands by it.
        "SPARK_SCALA_VERSION": next((home / "jars").glob("spark-core_*.jar"))
        .name.split("_")[1]
        .split("-")[0],
    }
