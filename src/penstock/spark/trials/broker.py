"""A real Kafka broker for trials and tests: one lean KRaft node on loopback, on free ports.

It is gone with the process that started it. Its jars come by Maven, once, into the user's cache folder; where that is
impossible `NoBroker` says why. Its data lives in a folder of the caller's.
"""

from __future__ import annotations

import base64
import ctypes
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

POM = Path(__file__).with_name("broker.xml")
_JVM = ["-Xms64m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto"]
_START_SECONDS = 60.0
_PR_SET_PDEATHSIG = 1


class NoBroker(Exception):
    """Why there can be no broker here, in one sentence."""


def broker_jars() -> Path:
    """The folder of the broker's jars; fetched when it is not there yet."""
    version = hashlib.sha256(POM.read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "penstock"
    target = cache / f"test-broker-{version}"
    if target.is_dir():
        return target
    maven = shutil.which("mvn")
    if maven is None:
        raise NoBroker("mvn is not on the PATH; install Maven to run what needs a Kafka broker.")
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as folder:
        jars = Path(folder) / "jars"
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        done = subprocess.run(
            [maven, "-q", "-B", "-f", str(POM), *goal],
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        if done.returncode != 0 or not any(jars.glob("kafka_*.jar")):
            raise NoBroker(f"Maven could not fetch the Kafka broker's jars: {done.stdout[-500:].strip()}")
        if not target.is_dir():  # another run may have been faster
            jars.rename(target)
    return target


class Broker:
    """A broker over a folder of its own; may be stopped, killed and started again."""

    def __init__(self, jars: Path, folder: Path, settings: dict[str, object] | None = None) -> None:
        java = shutil.which("java")
        if java is None:
            raise NoBroker(
                "java is not on the PATH; install Java 17 or later to run what needs a Kafka broker."
            )
        self._java, self._jars, self._folder = java, jars, folder
        self._settings = settings or {}
        self.port, self._controller_port = _free_port(), _free_port()
        self._process: subprocess.Popen[bytes] | None = None
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def servers(self) -> str:
        """What clients call `bootstrap.servers`."""
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> str:
        """The end of what the broker printed."""
        path = self._folder / "broker.log"
        return path.read_text(errors="replace")[-3000:] if path.exists() else ""

    def start(self) -> None:
        """Start, or start again, and wait until it answers."""
        config = self._write_config()
        if not (self._folder / "data" / "meta.properties").exists():
            # A hyphen in front would be taken for an option.
            cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "A")
            subprocess.run(
                self._command("kafka.tools.StorageTool", "format", "-t", cluster, "-c", str(config)),
                check=True,
                capture_output=True,
                timeout=_START_SECONDS,
            )
        libc = ctypes.CDLL(None)
        with (self._folder / "broker.log").open("ab") as output:
            self._process = subprocess.Popen(
                self._command("kafka.Kafka", str(config)),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                preexec_fn=lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL),
            )
        self._wait()

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once, as a crash would."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.send_signal(how)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(20)

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise RuntimeError(f"The Kafka broker ended with {self._process.returncode}: {self.log}")
            try:
                socket.create_connection(("127.0.0.1", self.port), 0.2).close()
                return
            except OSError:
                time.sleep(0.05)
        self.kill()
        raise RuntimeError(f"The Kafka broker did not answer within {_START_SECONDS:g} s: {self.log}")

    def _command(self, main: str, *arguments: str) -> list[str]:
        return [self._java, *_JVM, "-cp", f"{self._jars}/*", main, *arguments]

    def _write_config(self) -> Path:
        one = dict.fromkeys(
            [
                "num.partitions",
                "default.replication.factor",
                "min.insync.replicas",
                "offsets.topic.replication.factor",
                "offsets.topic.num.partitions",
                "transaction.state.log.replication.factor",
                "transaction.state.log.min.isr",
                "transaction.state.log.num.partitions",
                "share.coordinator.state.topic.replication.factor",
                "share.coordinator.state.topic.min.isr",
                "share.coordinator.state.topic.num.partitions",
                "num.network.threads",
                "num.recovery.threads.per.data.dir",
            ],
            1,
        )
        config: dict[str, object] = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": self._folder / "data",
            **one,
            "num.io.threads": 2,
            "background.threads": 2,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
            "log.cleaner.dedupe.buffer.size": 4 << 20,
            "log.retention.hours": -1,
            "message.max.bytes": 16 << 20,
            # A killed broker may come back within seconds instead of twelve.
            "broker.session.timeout.ms": 1000,
            "broker.heartbeat.interval.ms": 100,
            **self._settings,
        }
        path = self._folder / "server.properties"
        path.write_text("".join(f"{name}={value}\n" for name, value in config.items()))
        return path


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
