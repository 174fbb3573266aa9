"""What went wrong in a query, said with the owner's line first; Spark's whole text is kept beside it."""

from __future__ import annotations

import re
import traceback
from dataclasses import dataclass
from pathlib import Path

from penstock.model.errors import FencedError, PenstockError

_FRAME = re.compile(r'File "([^"]+)", line (\d+)(?:, in (\S+))?')
_CAUSE = re.compile(r"^\s*(?:Caused by: )?([A-Za-z_][\w.$]*(?:Error|Exception|Interrupt|Warning)\b.*)$")
_OURS = re.compile(r"^.*\b[A-Za-z_][\w.$]*(?:Error|Exception): (.+)\n\s+at penstock\.", re.MULTILINE)
"""An exception that our own Java classes threw: it is a sentence already, whatever its cause was."""


@dataclass(frozen=True)
class Failure:
    """A failed query: one sentence, the owner's line where known, and everything Spark said."""

    summary: str
    place: str
    whole: str
    fenced: bool = False

    def __str__(self) -> str:
        return f"{self.place}: {self.summary}" if self.place else self.summary

    @property
    def sentence(self) -> str:
        """The same, with its full stop."""
        return with_full_stop(str(self))


def with_full_stop(text: str) -> str:
    """A text as a sentence that others may follow."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def describe_failure(error: BaseException | None, planned: BaseException | None, folder: str) -> Failure:
    """A query's exception, and the planner's own where it was the planner that raised."""
    whole = str(error) if error is not None else ""
    if planned is not None:
        return Failure(str(planned), "", whole or str(planned), isinstance(planned, FencedError))
    if isinstance(error, PenstockError):
        return Failure(str(error), "", whole)
    place, summary = _place_in(whole, folder), _python_error(whole) or _java_error(whole)
    return Failure(summary or "the query ended without a word", place, whole)


def user_line(error: BaseException, folder: str) -> str:
    """file:line of the owner's code in an exception of this process."""
    if not folder:
        return ""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename.startswith(folder)]
    return f"{_short(frames[-1].filename)}:{frames[-1].lineno}" if frames else ""


def _place_in(text: str, folder: str) -> str:
    """The innermost line of the owner's files in a worker's traceback."""
    found = [(file, line) for file, line, _ in _FRAME.findall(text) if folder and file.startswith(folder)]
    return f"{_short(found[-1][0])}:{found[-1][1]}" if found else ""


def _short(file: str) -> str:
    path = Path(file)
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)


def _python_error(text: str) -> str:
    """The last line of the last Python traceback: `ZeroDivisionError: division by zero`."""
    start = text.rfind("Traceback (most recent call last)")
    if start < 0:
        return ""
    for line in text[start:].splitlines()[1:]:
        if line and not line.startswith(" ") and _CAUSE.match(line):
            return line.strip()
    return ""


def _java_error(text: str) -> str:
    """What our own classes said, else the deepest cause that Java names, without its stack."""
    ours = _OURS.search(text)
    if ours:
        return ours.group(1)[:500]
    causes = [m.group(1).strip() for line in text.splitlines() if (m := _CAUSE.match(line))]
    deepest = next((line for line in reversed(causes) if "Caused by" not in line), "")
    first = text.strip().splitlines()[0] if text.strip() else ""
    return (deepest.split(": ", 1)[-1] if deepest else first)[:500]
