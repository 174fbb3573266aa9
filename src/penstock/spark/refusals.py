"""What Spark refuses of a job before it runs, in the owner's words: no error class, no state code, no stack.

It knows what Spark's errors say, and nothing of how a job is run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger

_CODES = re.compile(r"^\[[A-Z0-9_.]+\]\s*|\s*SQLSTATE: \w+|;?\s*\(?line \d+,? pos \d+\)?")
_CONTEXT_LOGGERS = ("DataFrameQueryContextLogger", "SQLQueryContextLogger")

_MODES = (
    (
        "aggregations without watermark",
        "aggregates in mode {mode!r} without a watermark, so that no result would ever be final",
        'use mode="update", or give it a watermark (withWatermark)',
    ),
    (
        "no streaming aggregations",
        "keeps nothing to write whole in mode {mode!r}: it does not aggregate",
        'use mode="append"',
    ),
    (
        "not supported in data source",
        "writes in mode {mode!r}, which its sink does not take",
        'use mode="append", or write to a topic or to a foreach_batch sink',
    ),
    ("this output mode is not supported", "", 'use mode="append", or "update" for an aggregation'),
    ("in update output mode", "", 'use mode="append"'),
    ("update output mode", "", 'use mode="append"'),
    ("watermark", "", "give its inputs a watermark (withWatermark)"),
    ("", "", "leave out of its function or its sink what a stream cannot do"),
)
"""By words of Spark's, the first that fits: (words, what is wrong where we say it better, what to do)."""


def quieten_spark() -> None:
    """PySpark logs each refusal with its stack, beside raising it: the one who raises is heard."""
    for name in _CONTEXT_LOGGERS:
        logging.getLogger(PySparkLogger.getLogger(name).name).disabled = True


def describe_error(error: BaseException, columns: Sequence[str] = ()) -> tuple[str, str]:
    """(what is wrong, what to do) of an error that building a frame raised; `columns` are those of the inputs."""
    condition, given = _condition(error)
    if condition.startswith("UNRESOLVED_COLUMN"):
        there = _names(given.get("proposal", "")) or ", ".join(columns)
        return (
            f"asks for the column {_names(given.get('objectName', '?'))!r}, which is not there",
            f"use one that is: {there}" if there else "select what it needs first",
        )
    if condition == "ATTRIBUTE_NOT_SUPPORTED":
        return (
            f"asks a frame for {given.get('attr_name', '?')!r}, which is neither a column nor a method",
            f"the columns of its inputs are {', '.join(columns)}",
        )
    if condition == "UNRESOLVED_ROUTINE":
        return (
            f"calls the function {_names(given.get('routineName', '?'))!r}, which Spark does not know",
            "mend its name, or give a function of your own as a udf",
        )
    if condition.startswith("PARSE_"):
        return f"has SQL that does not parse: {plain_text(error)}", "mend the SQL there"
    text = plain_text(error)
    if "must be executed with writestream" in text.lower():
        return "starts a query by itself", "return the frame that it made: the run starts it"
    if isinstance(error, PySparkException):
        return f"is refused by Spark: {text}", "change what its function asks for there"
    return f"raises {type(error).__name__}: {text}", "mend its function there"


def describe_stream_refusal(error: BaseException, mode: str) -> tuple[str, str]:
    """The same of a frame that cannot be run as a stream in this output mode."""
    text = plain_text(error)
    problem, remedy = next((p, r) for words, p, r in _MODES if words in text.lower())
    return problem.format(mode=mode) or f"cannot run as a stream in mode {mode!r}: {text}", remedy


def plain_text(error: BaseException) -> str:
    """An error's first line without Spark's codes."""
    text = str(error).strip()
    first = _CODES.sub("", text.splitlines()[0]) if text else ""
    return first.strip()[:300].rstrip(" ;.") or type(error).__name__


def _condition(error: BaseException) -> tuple[str, dict[str, str]]:
    if not isinstance(error, PySparkException):
        return "", {}
    return error.getCondition() or "", dict(error.getMessageParameters() or {})


def _names(quoted: str) -> str:
    return quoted.replace("`", "")
