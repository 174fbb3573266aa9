"""What is said where executors cannot reach the files of this host."""

from __future__ import annotations

from pathlib import Path

from penstock.spark.reach import misplaced_log, misplaced_state


def test_a_log_is_misplaced_where_executors_are_elsewhere() -> None:
    assert misplaced_log([]) == ""
    text = misplaced_log(["far", "farther"])
    assert "executors run on far, farther" in text and 'bus.kind = "kafka"' in text


def test_state_in_a_folder_of_this_host_is_warned_of_with_the_setting() -> None:
    text = misplaced_state("count", Path("work/checkpoints"), ["far"])
    assert "Job count keeps state" in text and "work/checkpoints" in text and "store.folder" in text
