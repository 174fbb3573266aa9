"""A task's life: every pair of the table leads where it says, every other is refused and changes nothing."""

from __future__ import annotations

from itertools import product
from typing import get_args

import pytest

from penstock.core.jobs.task_lifecycle import (
    BACKOFF_MOST_SECONDS,
    TRANSITIONS,
    TaskEvent,
    TaskState,
    backoff_seconds,
    next_state,
)
from penstock.model.errors import ConflictError

STATES, EVENTS = get_args(TaskState), get_args(TaskEvent)
ILLEGAL = [pair for pair in product(STATES, EVENTS) if pair not in TRANSITIONS]


def walk(state: TaskState, *events: TaskEvent) -> TaskState:
    for event in events:
        state = next_state(state, event)
    return state


def test_a_life_that_ends_at_a_clean_edge_and_goes_on() -> None:
    assert walk("new", "start", "drain", "batch_edge") == "drained"
    assert walk("drained", "start", "fail", "start", "stop", "stop") == "stopped"


@pytest.mark.parametrize("pair", sorted(TRANSITIONS), ids="-".join)
def test_the_table_is_the_machine(pair: tuple[TaskState, TaskEvent]) -> None:
    assert next_state(*pair) == TRANSITIONS[pair]


@pytest.mark.parametrize("pair", ILLEGAL, ids="-".join)
def test_every_other_pair_is_refused_by_name(pair: tuple[TaskState, TaskEvent]) -> None:
    with pytest.raises(ConflictError, match=f"{pair[0]} cannot take '{pair[1]}'"):
        next_state(*pair)


def test_a_fenced_task_never_runs_again() -> None:
    """Another run of it writes now: all it can do is stop."""
    reached, frontier = {"fenced"}, ["fenced"]
    while frontier:
        here = frontier.pop()
        for (state, event), then in TRANSITIONS.items():
            if state == here and then not in reached and (here, event) != ("stopped", "start"):
                reached.add(then)
                frontier.append(then)
    assert reached == {"fenced", "stopped"}


def test_every_state_can_be_stopped_and_reached() -> None:
    assert {state for state, event in TRANSITIONS if event == "stop"} == set(STATES)
    assert set(TRANSITIONS.values()) | {"new"} == set(STATES)


def test_the_pause_after_failures_doubles_up_to_a_most() -> None:
    assert [backoff_seconds(n) for n in range(-1, 8)] == [0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]
    assert backoff_seconds(10_000) == BACKOFF_MOST_SECONDS
