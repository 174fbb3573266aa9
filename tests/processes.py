"""Commands in processes of their own that go on while a test looks at what they say."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence


class Started:
    """A running command, its lines as they come."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str] | None = None) -> None:
        self.lines: list[str] = []
        self._came = threading.Condition()
        self._process = subprocess.Popen(
            command,
            env=env,
            stdin=subprocess.PIPE,
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

    def say(self, line: str) -> None:
        """What it reads next."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{line}\n")
        self._process.stdin.flush()

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

    def kill(self) -> int:
        """It and all that it started, where it still runs; how it ended."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
        return self.end()
