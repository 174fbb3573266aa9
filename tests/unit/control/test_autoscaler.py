"""The loop of one pipeline: when a round is held, what it is told, what is done and what is kept of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from containers import FakeContainer, Notes, batch_of, partition_of, sample_of
from fleets import QUICK, make_job, make_pipeline
from penstock.control.autoscaler import LOOK_SECONDS, QUIET_JOBS, Autoscaler, Room
from penstock.core.controller.strategy import strategy_named
from penstock.model.decisions import Decision, Evidence, JobProposal, ScaleExecutors, ScaleThreads
from penstock.model.errors import SpecError
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import BatchSample, ContainerSample, Observation
from penstock.model.status import RunEvent

PIPELINE = make_pipeline(make_job("x", ["a"], ["b"], scaling=QUICK), make_job("y", ["b"], scaling=QUICK))
START = 1_000.0


class Scripted:
    """A strategy that says what it is told to, and keeps what it saw."""

    name = "scripted"

    def __init__(self, *actions: ScaleThreads | ScaleExecutors, verdict: Any = "scale") -> None:
        self.actions, self.verdict = actions, verdict
        self.seen: list[Observation] = []

    def start(self, pipeline: PipelineSpec) -> int:
        return 0

    def decide(self, state: int, observation: Observation, now: float) -> tuple[int, Decision]:
        self.seen.append(observation)
        acts = self.actions if state == 0 else ()
        verdict = self.verdict if state == 0 else "hold"
        return state + 1, Decision(f"s-{state}", now, self.name, verdict, f"round {state}.", (), acts)


class Scene:
    """A pipeline under load: each second of virtual time is a step."""

    def __init__(self, strategy: Any, room: Room | None = None, pipeline: PipelineSpec = PIPELINE) -> None:
        self.container, self.notes = FakeContainer({"x": 1, "y": 1}), Notes()
        self.loop = Autoscaler(pipeline, strategy, self.container, self.notes, room)
        self.now, self._number = START, 0

    def pass_seconds(self, seconds: int, jobs: str = "xy", rate: float = 500.0) -> None:
        for _ in range(seconds):
            self.now += 1.0
            produced = rate * (self.now - START)
            self.container.partitions = [
                partition_of("x", "a", self.now, produced, produced),
                partition_of("y", "b", self.now, produced, produced - 40),
            ]
            if int(self.now - START) % 2 == 0:
                self._number += 1
                sizes = self.container.sizes
                told = {
                    "x": batch_of("x", self._number, self.now, 2 * rate, sizes["x"], reads="a", writes="b"),
                    "y": batch_of("y", self._number, self.now, 2 * rate, sizes["y"], reads="b"),
                }
                self.container.batches = [told[job] for job in jobs]
            self.container.sample = sample_of(self.now)
            assert self.loop.step(self.now) == self.now + LOOK_SECONDS


def test_a_round_is_held_when_every_job_closed_a_window() -> None:
    strategy = Scripted()
    scene = Scene(strategy)
    scene.pass_seconds(9)
    assert strategy.seen == []
    scene.pass_seconds(1)
    (seen,) = strategy.seen
    assert seen.at == START + 10 and set(seen.windows) == {"x", "y"}
    scene.pass_seconds(10)
    assert len(strategy.seen) == 2


def test_an_idle_job_keeps_nobody_waiting() -> None:
    strategy = Scripted()
    scene = Scene(strategy)
    scene.pass_seconds(11, jobs="x")
    (seen,) = strategy.seen
    assert set(seen.windows) == {"x"}
    scene.pass_seconds(10, jobs="")
    assert len(strategy.seen) == 2 and strategy.seen[1].windows == {}


def test_a_round_is_told_of_all_there_is() -> None:
    strategy = Scripted()
    scene = Scene(strategy, Room(4, 2, 6))
    scene.container.hosts = 3
    scene.pass_seconds(10)
    (seen,) = strategy.seen
    assert seen.threads == {"x": 1, "y": 1} and seen.backlog == {"x": 0.0, "y": 40.0}
    assert seen.source_rates == {"a": pytest.approx(500.0)} and seen.changing == frozenset()
    assert (seen.slots, seen.executors) == (32, 3)
    assert (seen.slots_per_executor, seen.executors_min, seen.executors_max) == (4, 2, 6)


def test_a_source_that_was_seen_once_has_no_rate_yet() -> None:
    strategy = Scripted()
    scene = Scene(strategy)
    scene.container.partitions = [partition_of("x", "a", START, 5, 5)]
    scene.loop.step(START)
    scene.loop.step(START + 10)
    assert math.isnan(strategy.seen[0].source_rates["a"])


def test_a_rate_on_its_way_up_is_said_to_change() -> None:
    strategy = Scripted()
    scene = Scene(strategy)
    for second in range(1, 11):
        end = 100.0 * second if second <= 5 else 500.0 + 4_000.0 * (second - 5)
        scene.container.partitions = [partition_of("x", "a", START + second, end, end)]
        scene.loop.step(START + second)
    scene.loop.step(START + 11)
    assert strategy.seen[0].changing == {"a"} and strategy.seen[0].source_rates["a"] > 2_000


def test_a_round_waits_until_it_is_known_how_far_a_source_stepped_up() -> None:
    strategy = Scripted()
    scene = Scene(strategy)
    scene.pass_seconds(8)
    produced = 4_000.0
    for second in range(9, 14):
        produced += 2_000.0
        scene.container.partitions = [partition_of("x", "a", START + second, produced, produced)]
        scene.loop.step(START + second)
    (seen,) = strategy.seen
    assert seen.at == START + 13, "it was due two seconds before"
    assert seen.source_rates["a"] == pytest.approx(2_000.0)


def test_a_source_that_never_ceases_to_rise_holds_a_round_for_a_part_of_an_interval_only() -> None:
    strategy = Scripted()
    scene = Scene(strategy)
    produced, rate = 0.0, 100.0
    for second in range(1, 16):
        produced, rate = produced + rate, rate * 1.7
        scene.container.partitions = [partition_of("x", "a", START + second, produced, produced)]
        scene.loop.step(START + second)
    assert [seen.at for seen in strategy.seen] == [START + 15]


def test_actions_are_carried_out_and_told_with_their_cause() -> None:
    scene = Scene(Scripted(ScaleThreads("x", 5, "s-0"), ScaleExecutors(2, "s-0")))
    scene.pass_seconds(10)
    assert scene.container.sizes == {"x": 5, "y": 1} and scene.container.hosts == 2
    events = scene.notes.of(RunEvent)
    assert [(e.kind, e.job, e.cause) for e in events] == [("changed", "x", "s-0"), ("changed", "", "s-0")]
    assert "5 threads" in events[0].text and "2 executors" in events[1].text


def test_a_refused_action_is_told_and_stops_no_other() -> None:
    scene = Scene(
        Scripted(ScaleThreads("x", 5, "s-0"), ScaleExecutors(2, "s-0"), ScaleThreads("y", 3, "s-0"))
    )
    scene.container.refuses = {"x", "executors"}
    scene.pass_seconds(10)
    assert scene.container.sizes == {"x": 1, "y": 3}
    events = scene.notes.of(RunEvent)
    assert [e.kind for e in events] == ["refused", "refused", "changed"]
    assert events[0].text == "x is being moved; nothing was done." and events[0].cause == "s-0"
    scene.pass_seconds(10)
    assert len(scene.notes.of(Decision)) == 2, "the loop goes on"


def test_every_decision_is_kept_before_it_is_carried_out() -> None:
    scene = Scene(Scripted(ScaleThreads("x", 5, "s-0")))
    scene.pass_seconds(10)
    kinds = [type(e) for e in scene.notes.entries if not isinstance(e, BatchSample)]
    assert kinds == [Decision, ContainerSample, RunEvent]
    assert scene.notes.of(Decision)[0].id == "s-0"


class Crowd(Scripted):
    """Says something of very many jobs in each round."""

    def __init__(self, jobs: int, **more: Any) -> None:
        super().__init__(**more)
        self.jobs = jobs

    def decide(self, state: int, observation: Observation, now: float) -> tuple[int, Decision]:
        state, decision = super().decide(state, observation, now)
        blank = Evidence(*(math.nan,) * 5, selectivity={}, **dict.fromkeys(_SECONDS, math.nan))
        said = tuple(
            JobProposal(f"j{i}", 1, 1, 1, "none", f"round {state}", "", blank) for i in range(self.jobs)
        )
        return state, replace(decision, proposals=said, skipped=("j7: no window",))


_SECONDS = ("overhead_seconds", "objective_seconds", "predicted_batch_seconds")


def kept_jobs(scene: Scene) -> list[list[str]]:
    return [[p.job for p in d.proposals] for d in scene.notes.of(Decision)]


def test_of_a_quiet_round_over_many_jobs_some_are_kept_in_turns() -> None:
    jobs = 2 * QUIET_JOBS + 10
    scene = Scene(Crowd(jobs, verdict="hold"))
    scene.pass_seconds(40)
    names = [f"j{i}" for i in range(jobs)]
    first, second, third = names[:QUIET_JOBS], names[QUIET_JOBS : 2 * QUIET_JOBS], names[2 * QUIET_JOBS :]
    assert kept_jobs(scene) == [first, second, third, first]
    newest = {p.job: p.reason for d in scene.notes.of(Decision) for p in d.proposals}
    assert set(newest) == set(names), "each job's newest is never far"
    kept = scene.notes.of(Decision)[0]
    assert kept.skipped == (
        "j7: no window",
        f"{jobs - QUIET_JOBS} other jobs: nothing changes, and their proposals are kept in turns",
    )
    shown = scene.loop.seen.decision
    assert shown is not None and len(shown.proposals) == jobs, "what is shown is whole"


def test_of_few_jobs_every_round_is_kept_whole() -> None:
    scene = Scene(Crowd(QUIET_JOBS, verdict="hold"))
    scene.pass_seconds(20)
    assert [len(jobs) for jobs in kept_jobs(scene)] == [QUIET_JOBS, QUIET_JOBS]
    assert scene.notes.of(Decision)[0].skipped == ("j7: no window",)


@pytest.mark.parametrize("verdict", ["alert", "roll_back"])
def test_what_changes_or_alerts_is_kept_whole(verdict: str) -> None:
    scene = Scene(Crowd(500, verdict=verdict))
    scene.pass_seconds(20)
    assert [len(jobs) for jobs in kept_jobs(scene)] == [500, QUIET_JOBS]


def test_what_acts_is_kept_whole() -> None:
    strategy = Crowd(500)
    strategy.actions = (ScaleThreads("x", 5, "s-0"),)
    scene = Scene(strategy)
    scene.pass_seconds(20)
    assert [len(jobs) for jobs in kept_jobs(scene)] == [500, QUIET_JOBS]


def test_a_quiet_round_puts_no_more_into_words_than_it_keeps() -> None:
    """Built when read: those that are not kept are never built."""
    read: list[object] = []

    class Counted(Sequence[JobProposal]):
        def __len__(self) -> int:
            return 1_000

        def __getitem__(self, index: Any) -> Any:
            read.append(index)
            return ()

    class Huge(Scripted):
        def decide(self, state: int, observation: Observation, now: float) -> tuple[int, Decision]:
            state, decision = super().decide(state, observation, now)
            return state, replace(decision, proposals=Counted())

    scene = Scene(Huge(verdict="hold"))
    scene.pass_seconds(20)
    assert read == [slice(0, QUIET_JOBS), slice(QUIET_JOBS, 2 * QUIET_JOBS)]


def test_every_batch_is_kept_as_it_came() -> None:
    scene = Scene(Scripted())
    scene.pass_seconds(10)
    assert [(b.task.job, b.batch_id) for b in scene.notes.of(BatchSample)] == [
        (job, n) for n in range(1, 6) for job in "xy"
    ]


@pytest.mark.parametrize(("verdict", "told"), [("alert", True), ("roll_back", True), ("hold", False)])
def test_what_is_shown_is_the_newest_decision_that_matters(verdict: str, told: bool) -> None:
    scene = Scene(Scripted(verdict=verdict))
    scene.pass_seconds(20)
    seen = scene.loop.seen
    assert seen.decision is not None and seen.decision.reason == "round 1."
    assert (seen.changed is not None and seen.changed.reason == "round 0.") == told


def test_what_is_seen_is_there_between_rounds() -> None:
    scene = Scene(Scripted())
    scene.pass_seconds(13)
    seen = scene.loop.seen
    assert seen.backlog == {"x": 0.0, "y": 40.0} and set(seen.windows) == {"x", "y"}
    assert seen.container is not None and seen.container.at == START + 13


def test_a_run_that_ends_is_watched_and_not_decided_on() -> None:
    strategy = Scripted(ScaleThreads("x", 5, "s-0"))
    scene = Scene(strategy)
    scene.loop.only_observes = True
    scene.pass_seconds(25)
    assert strategy.seen == [] and scene.container.calls == [] and set(scene.loop.seen.windows) == {"x", "y"}


def test_rounds_follow_the_shortest_policy_interval() -> None:
    quick = make_job("x", ["a"], scaling=QUICK.model_copy(update={"policy_interval_seconds": 4.0}))
    strategy = Scripted()
    scene = Scene(strategy, pipeline=make_pipeline(quick, make_job("y", ["b"], scaling=QUICK)))
    scene.pass_seconds(13, jobs="")
    assert [seen.at - START for seen in strategy.seen] == [5.0, 9.0, 13.0]


def test_a_pipeline_with_a_cycle_is_refused_at_once() -> None:
    loop = make_pipeline(make_job("x", ["a"], ["a"]))
    with pytest.raises(SpecError, match="x -> x"):
        Autoscaler(loop, strategy_named("penstock"), FakeContainer({}), Notes())


def test_the_real_strategy_takes_the_right_size_through_the_loop() -> None:
    """500/s at a millisecond each fit one thread; at 2,700/s the loop asks for three, in one decision for both jobs."""
    scene = Scene(strategy_named("penstock"))
    scene.pass_seconds(10)
    assert scene.container.calls == []
    assert [d.verdict for d in scene.notes.of(Decision)] == ["hold"]
    scene = Scene(strategy_named("penstock"))
    scene.pass_seconds(10, rate=2_700.0)
    assert dict(scene.container.calls) == {"x": 3, "y": 3}
    changed = scene.notes.of(Decision)[-1]
    assert changed.verdict == "scale" and {a.cause for a in changed.actions} == {changed.id}
