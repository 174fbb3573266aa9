"""The demo's arithmetic: which rate needs its sizes, and whether the counts are those of the sentences."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise

import pytest

from penstock.adapters.memory import MemoryTopics
from penstock.app.demo import (
    FIRST_RATES,
    ROOM_SHARE,
    SIZES,
    RatePlan,
    check_counts,
    describe_steps,
    plan_rate,
)
from penstock.app.demo_files import COUNT_PER_SECOND, SPLIT_PER_SECOND, WORDS_PER_SENTENCE
from penstock.control.reporting import cost_in
from penstock.core.sizing.batch_time import JobCost, StageCost, carried_rate, threads_for
from penstock.model.decisions import Decision, Evidence, JobProposal, ScaleThreads, StageNeed
from penstock.model.records import Record
from penstock.ports.topics import Topics

OBJECTIVE_SECONDS = 2.0
SPLIT = JobCost(0.2, (StageCost(1 / 167),))
COUNT = JobCost(0.3, (StageCost(1 / 2_080), StageCost(0.00001, 0.05, ceiling=2)))


def proposal(job: str, cost: JobCost) -> JobProposal:
    stages = tuple(
        StageNeed(i, 1.0, s.ceiling, 0.0, s.task_seconds, s.record_seconds, s.unit_share)
        for i, s in enumerate(cost.stages)
    )
    evidence = Evidence(
        target_rate=math.nan,
        backlog_records=0.0,
        backlog_rate=0.0,
        true_rate=math.nan,
        observed_rate=math.nan,
        selectivity={},
        overhead_seconds=cost.overhead_seconds,
        objective_seconds=OBJECTIVE_SECONDS,
        predicted_batch_seconds=math.nan,
        stages=stages,
    )
    return JobProposal(job, 1, 1, 1, "none", "", "", evidence)


def planned(split: JobCost, count: JobCost = COUNT) -> RatePlan:
    return plan_rate({"split": proposal("split", split), "count": proposal("count", count)})


def test_what_a_decision_believed_is_read_off_its_evidence() -> None:
    uneven = JobCost(0.25, (StageCost(0.001), StageCost(0.002, 0.07, ceiling=8, unit_share=0.3)))
    assert cost_in(proposal("x", uneven).evidence) == uneven


def test_the_rate_needs_exactly_the_sizes_that_are_shown() -> None:
    plan = planned(SPLIT)
    assert plan.needs == SIZES
    per_word = plan.per_second * WORDS_PER_SENTENCE
    for job, cost, rate in (("split", SPLIT, plan.per_second), ("count", COUNT, per_word)):
        assert threads_for(cost, rate, OBJECTIVE_SECONDS).threads == SIZES[job]


def test_the_rate_leaves_room_inside_the_range_that_needs_these_sizes() -> None:
    plan = planned(SPLIT)
    most = min(plan.carried.values())
    fewer = [
        carried_rate(cost, OBJECTIVE_SECONDS, SIZES[job] - 1) / each
        for job, cost, each in (("split", SPLIT, 1.0), ("count", COUNT, WORDS_PER_SENTENCE))
    ]
    assert max(fewer) < plan.per_second < most
    assert plan.per_second == pytest.approx(max(fewer) + ROOM_SHARE * (most - max(fewer)))


def test_where_no_rate_needs_both_sizes_the_nearest_is_taken_and_said() -> None:
    """Sentences cost twice as much to split: what keeps 20 counters busy is beyond ten splitters."""
    slow = JobCost(0.2, (StageCost(2 / 167),))
    plan = planned(slow)
    assert plan.needs["split"] == SIZES["split"] and plan.needs["count"] < SIZES["count"]
    assert plan.per_second == pytest.approx(0.97 * plan.carried["split"])
    assert f"{plan.needs['count']} for count" in plan.in_words()


def test_the_plan_is_said_with_its_numbers() -> None:
    text = planned(SPLIT).in_words()
    assert text.startswith("As measured, 10 threads of split ") and "10 for split and 20 for count" in text


def test_what_is_measured_first_goes_up_and_down() -> None:
    """Only batches of different sizes tell what a record costs from what a Spark task does; one thread carries each."""
    rates = [rate for _, rate in FIRST_RATES.points]
    assert all(a != b for a, b in pairwise(rates)) and len(set(rates)) > 2
    assert max(rates) < SPLIT_PER_SECOND and max(rates) * WORDS_PER_SENTENCE < COUNT_PER_SECOND


# Counts held against sentences


def topics_of(sentences: Iterable[str], counts: Iterable[tuple[str, int]]) -> Topics:
    held = MemoryTopics()
    held.create("sentences", 2)
    held.create("counts", 3)
    held.append("sentences", [Record(None, text.encode(), i) for i, text in enumerate(sentences)])
    held.append(
        "counts",
        [
            Record(word.encode(), json.dumps({"word": word, "n": n}).encode(), i)
            for i, (word, n) in enumerate(counts)
        ],
    )
    return held


SENTENCES = ("to be or not to be", "be quick", "not now")


def true_counts() -> dict[str, int]:
    return dict(Counter(" ".join(SENTENCES).split()))


def test_counts_that_are_right_are_said_to_be() -> None:
    exact, text = check_counts(topics_of(SENTENCES, true_counts().items()))
    assert exact and text == "Checked: all 10 words of 3 sentences are counted exactly."


def test_the_newest_count_of_a_word_counts() -> None:
    updates = [*((word, 1) for word in true_counts()), *true_counts().items()]
    assert check_counts(topics_of(SENTENCES, updates))[0]
    assert not check_counts(topics_of(SENTENCES, updates[::-1]))[0]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"be": 4}, "be: 4 instead of 3"),
        ({"be": 2}, "be: 2 instead of 3"),
        ({"ghost": 1}, "ghost: 1 instead of None"),
    ],
)
def test_a_count_that_is_wrong_is_named(change: dict[str, int], words: str) -> None:
    exact, text = check_counts(topics_of(SENTENCES, {**true_counts(), **change}.items()))
    assert (
        not exact and "The counts of 1 words are wrong (of 10 words in 3 sentences)" in text and words in text
    )


def test_a_word_that_was_never_counted_is_named() -> None:
    counts = {word: n for word, n in true_counts().items() if word != "or"}
    exact, text = check_counts(topics_of(SENTENCES, counts.items()))
    assert not exact and "or: None instead of 1" in text


def test_of_many_wrong_counts_five_are_shown() -> None:
    exact, text = check_counts(topics_of(SENTENCES, [(word, 99) for word in true_counts()]))
    assert not exact and "The counts of 6 words are wrong" in text and text.count("instead of") == 5


def test_nothing_counted_of_nothing_is_exact() -> None:
    assert check_counts(topics_of([], []))[0]


def change(at: float, *steps: tuple[str, int, int], lent: int = 0) -> Decision:
    """A decision that changed jobs: (job, threads before, after), so many of them for a backlog."""
    held = [
        replace(proposal(job, SPLIT), threads=before, steady=after - lent) for job, before, after in steps
    ]
    actions = tuple(ScaleThreads(job, after, "d") for job, _, after in steps)
    return Decision(f"d{at}", at, "penstock", "scale", "", held, actions)


def test_the_steps_of_a_demo_are_told_and_a_job_that_did_not_move_fails_it() -> None:
    up, more = change(10.0, ("split", 1, 10), ("count", 1, 20)), change(15.0, ("count", 20, 22), lent=2)
    down = change(50.0, ("split", 10, 5), ("count", 22, 10))
    early = change(2.0, ("count", 1, 2))
    assert describe_steps([early, up, more, down], 5.0, 40.0) == (
        True,
        "Up: split 1 -> 10, count 1 -> 20 -> 22 (20 + 2 for the backlog); down: split 10 -> 5, count 22 -> 10.",
    )
    sized, told = describe_steps([up], 5.0, 40.0)
    assert not sized and told.startswith("Up: split 1 -> 10, count 1 -> 20; down: nothing: a job")
