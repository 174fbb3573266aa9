"""What is said of a query that failed: the owner's line first, ours where we threw it, else Java's deepest cause."""

from __future__ import annotations

import pytest

from penstock.model.errors import ConflictError, FencedError
from penstock.spark.failures import Failure, describe_failure

PLAN = "\n=== Streaming Query ===\nIdentifier: copy-0@1.1\nLogical Plan:\nProject\n"
OURS = """Job aborted due to stage failure: Task 0 failed 1 times: java.io.IOException: segment a.arrow is missing; restore it
\tat penstock.LogReader.read(LogReader.java:104)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.io.FileNotFoundException: /log/a.arrow (No such file or directory)
\tat java.base/java.io.RandomAccessFile.open0(Native Method)
\tat penstock.LogReader.read(LogReader.java:98)
"""
JAVA = """Job aborted due to stage failure: Task 0 failed 1 times
\tat org.apache.spark.Some.thing(Some.scala:1)
Caused by: java.lang.ArithmeticException: divided by nothing
\tat org.apache.spark.Other.thing(Other.scala:2)
"""
PYTHON = """An exception was thrown from a UDF:
Traceback (most recent call last):
  File "/lib/spark/worker.py", line 10, in main
    process()
  File "/owner/files/jobs.py", line 7, in check
    1 / 0
ZeroDivisionError: division by zero
"""


@pytest.mark.parametrize(
    ("whole", "summary", "place"),
    [
        (OURS, "segment a.arrow is missing; restore it", ""),
        (JAVA, "divided by nothing", ""),
        (PYTHON, "ZeroDivisionError: division by zero", "/owner/files/jobs.py:7"),
        ("", "the query ended without a word", ""),
    ],
)
def test_a_failure_is_one_sentence_and_keeps_the_whole(whole: str, summary: str, place: str) -> None:
    found = describe_failure(RuntimeError(whole + PLAN if whole else ""), None, "/owner/files")
    assert (found.summary, found.place, found.fenced) == (summary, place, False)
    assert str(found) == (f"{place}: {summary}" if place else summary)
    assert found.whole.startswith(whole)


def test_what_the_planner_said_comes_before_what_spark_made_of_it() -> None:
    found = describe_failure(RuntimeError(JAVA), ConflictError("the topic was made anew"), "")
    assert (str(found), found.whole, found.fenced) == ("the topic was made anew", JAVA, False)
    assert describe_failure(None, FencedError("a newer one writes"), "").fenced


@pytest.mark.parametrize(
    ("text", "sentence"), [("no disk", "no disk."), ("No disk.", "No disk."), ("why?", "why?")]
)
def test_a_failure_is_a_sentence_that_others_may_follow(text: str, sentence: str) -> None:
    assert Failure(text, "", "").sentence == sentence
