"""Whether servers take a connection at all: asked before Spark starts, which would wait for them for minutes."""

from __future__ import annotations

import socket

from penstock.app.settings import Settings
from penstock.model.errors import EnvironmentProblem

_SECONDS = 3.0


def silent_servers(servers: str) -> list[str]:
    """Those of `host:port,host:port` that take no connection, each with the reason."""
    silent: list[str] = []
    for server in (part.strip() for part in servers.split(",")):
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS).close()
        except (OSError, OverflowError, ValueError) as error:
            silent.append(f"{server} ({error})")
    return silent


def check_reach(settings: Settings) -> None:
    """A sentence when neither of a list of servers answers that a run needs."""
    wanted: list[tuple[str, str]] = []
    if settings.spark.master.startswith("spark://"):
        wanted.append(
            (settings.spark.master.removeprefix("spark://"), "start the Spark master, or mend spark.master")
        )
    if settings.bus.kind == "kafka":
        wanted.append((settings.bus.servers, "start the broker, or mend bus.servers"))
    for servers, remedy in wanted:
        silent = silent_servers(servers)
        if len(silent) == len(servers.split(",")):
            raise EnvironmentProblem(f"No answer from {', '.join(silent)}; {remedy}.")
