"""The command `penstock` in processes of its own, as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

PENSTOCK = [sys.executable, "-m", "penstock.app.main"]


class Commands:
    """Commands over one project, all with the same settings in their environment."""

    def __init__(self, project: Path, settings: Mapping[str, str]) -> None:
        self.project = project
        self._env = {**os.environ, **settings}

    def run(self, *arguments: str, seconds: float = 120.0) -> subprocess.CompletedProcess[str]:
        """One command to its end."""
        return subprocess.run(
            [*PENSTOCK, *arguments],
            env=self._env,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def json(self, *arguments: str) -> Any:
        """What a command prints for programs."""
        done = self.run(*arguments, "-o", "json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def wait_until_read(self, *readers: str) -> None:
        """Until these are not behind; each look is a whole command, so that nothing here waits by the clock."""
        lag: Any = None
        for _ in range(90):
            lag = self.json("topic", "lag", "-p", str(self.project))
            if {row["reader"] for row in lag} == set(readers) and all(row["lag"] == 0 for row in lag):
                return
        raise AssertionError(lag)

    def start(self, *arguments: str) -> Started:
        """A command that goes on."""
        return Started([*PENSTOCK, *arguments], self._env)

    def records(self, topic: str) -> list[dict[str, Any]]:
        """All values of a topic, by partition and offset."""
        done = self.run("topic", "tail", topic, "--all", "-o", "json", "-p", str(self.project))
        assert done.returncode == 0, done.stderr
        return [json.loads(json.loads(line)["value"]) for line in done.stdout.splitlines()]


class Started:
    """A running command, its lines as they come."""

    def __init__(self, command: list[str], env: Mapping[str, str]) -> None:
        self.lines: list[str] = []
        self._came = threading.Condition()
        self._process = subprocess.Popen(
            command,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._came:
                self.lines.append(line.rstrip())
                self._came.notify_all()
        with self._came:
            self._came.notify_all()

    def until(self, wanted: Callable[[str], bool], seconds: float = 120.0) -> str:
        """The first line that is wanted."""
        with self._came:
            found = self._came.wait_for(
                lambda: self._find(wanted) or self._process.poll() is not None, seconds
            )
            line = self._find(wanted)
            assert found and line is not None, "\n".join(self.lines)
            return line

    def _find(self, wanted: Callable[[str], bool]) -> str | None:
        return next((line for line in self.lines if wanted(line)), None)

    @property
    def pid(self) -> int:
        return self._process.pid

    def interrupt(self) -> None:
        """Ctrl-C."""
        self._process.send_signal(signal.SIGINT)

    def end(self, seconds: float = 120.0) -> int:
        """Its exit code."""
        code = self._process.wait(seconds)
        self._reader.join(10.0)
        return code

    def kill(self) -> None:
        """Whatever is left of it."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(30.0)


def count_words(sentences: list[dict[str, Any]]) -> dict[str, int]:
    """What a word count must come to."""
    return dict(Counter(word for row in sentences for word in row["line"].split(" ")))


def newest_counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """An upsert topic as the table it stands for."""
    return {row["word"]: row["n"] for row in rows}
