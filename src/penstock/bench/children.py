"""Runs a trial in a process of its own, so that Spark sessions never mix and memory is given back.

A child prints lines of JSON: what it does now, and at last its result. It ends with its parent: its input is a pipe
that only the parent holds. What it wrote to its error output is shown only when it failed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from penstock.model.errors import EnvironmentProblem

Progress = Callable[[str], None]
PROGRESS, RESULT = "progress", "result"
_END_SECONDS = 10.0
_SHOWN = 2_000


def run_child(trial: str, work: Path, given: Mapping[str, object], progress: Progress) -> dict[str, Any]:
    """The result of `penstock.bench.TRIAL.measure`, run in a child; `work`: a folder for all it writes."""
    work.mkdir(parents=True, exist_ok=True)
    errors = work / "errors.log"
    command = [sys.executable, "-m", "penstock.bench.child", trial, str(work), json.dumps(dict(given))]
    with errors.open("wb") as out:
        child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=out, start_new_session=True
        )
    try:
        found = _listen(child, progress)
    finally:
        end_child(child)
    if found is None:
        told = errors.read_text(errors="replace").strip()[-_SHOWN:]
        raise EnvironmentProblem(
            f"The trial {trial} ended without a result; `penstock doctor` checks what Spark needs. It said:\n{told}"
        )
    return found


def _listen(child: subprocess.Popen[bytes], progress: Progress) -> dict[str, Any] | None:
    assert child.stdout is not None
    for line in child.stdout:
        try:
            told: Any = json.loads(line)
        except ValueError:
            continue  # a library's own words
        if not isinstance(told, dict):
            continue
        held = cast("dict[str, Any]", told)
        if RESULT in held:
            return held[RESULT]
        progress(str(held.get(PROGRESS, "")))
    return None


def end_child(child: subprocess.Popen[bytes]) -> None:
    """Let it go, with all that it started."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        child.wait(_END_SECONDS)
    except subprocess.TimeoutExpired:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        child.wait(_END_SECONDS)
