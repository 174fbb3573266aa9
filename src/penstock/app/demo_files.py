"""The demo's own project, as it is written into its folder: to be read, changed and run again.

DS2's word count (section 5.2) at a tenth of its rates: each thread of `split` and `count` is limited, and the limit counts
as work, so that many threads are real on a machine with few cores.
"""

from __future__ import annotations

from pathlib import Path

SPLIT_PER_SECOND = 167
COUNT_PER_SECOND = 1850
WORDS_PER_SENTENCE = 20

PIPELINE = f'''"""Counts words with two jobs whose threads can each do so much and no more."""

import time

from penstock import job, topic

sentences = topic("sentences", schema="line string", codec="string")
words = topic("words", schema="word string", key="word", codec="string")
counts = topic("counts", schema="word string, n long", key="word")


def limited(per_second):
    """Lets so many records a second through, in each thread: stands for work that takes its time."""

    def run(batches):
        started, passed = time.monotonic(), 0
        for batch in batches:
            passed += batch.num_rows
            time.sleep(max(0.0, started + passed / per_second - time.monotonic()))
            yield batch

    return run


@job(reads=sentences, writes=words)
def split(lines):
    slow = lines.mapInArrow(limited({SPLIT_PER_SECOND}), "line string")
    return slow.selectExpr("explode(split(line, ' ')) as word")


@job(reads=words, writes=counts, mode="update", state_partitions=2)
def count(words):
    slow = words.mapInArrow(limited({COUNT_PER_SECOND}), "word string")
    return slow.groupBy("word").count().withColumnRenamed("count", "n")
'''

SETTINGS = """[project]
name = "word count"

[bus]
durable = false

[spark]
slots = 36
heap = "800m"

[defaults]
trigger = "2s"
slo_lag = "1m"
scaling = { policy_interval = "5s", warm_up_windows = 2 }
"""


def write_demo(folder: Path) -> Path:
    """The project's folder, its files written anew."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pipeline.py").write_text(PIPELINE, encoding="utf-8")
    (folder / "penstock.toml").write_text(SETTINGS, encoding="utf-8")
    return folder
