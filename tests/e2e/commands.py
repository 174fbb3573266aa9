"""The command `penstock` in processes of its own, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from processes import Started

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


def count_words(sentences: list[dict[str, Any]]) -> dict[str, int]:
    """What a word count must come to."""
    return dict(Counter(word for row in sentences for word in row["line"].split(" ")))


def newest_counts(rows: list[dict[str, Any]]) -> dict[str, int]:
    """An upsert topic as the table it stands for."""
    return {row["word"]: row["n"] for row in rows}
