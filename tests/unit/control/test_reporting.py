"""A run's status each second, and what happens to its tasks, over a container in memory."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from containers import FakeContainer, Notes, sample_of
from fleets import QUICK, make_job, make_pipeline, one_stage, window
from penstock.control.autoscaler import Autoscaler, Seen
from penstock.control.reporting import STATUS_SECONDS, TEND_SECONDS, Reporter, Tender
from penstock.core.controller.strategy import strategy_named
from penstock.model.decisions import Decision, Evidence, JobProposal, StageNeed
from penstock.model.status import JobState, RunEvent, RunStatus

PIPELINE = make_pipeline(make_job("x", ["a"], ["b"], scaling=QUICK), make_job("y", ["b"], scaling=QUICK))
NAN = math.nan
EVIDENCE = Evidence(1.0, 0.0, 0.0, 1.0, 1.0, {}, 0.1, 2.0, 1.0)


class Desk:
    """A reporter with all that it reads."""

    def __init__(self) -> None:
        self.container, self.notes = FakeContainer({"x": 2, "y": 3}), Notes()
        self.loop = Autoscaler(PIPELINE, strategy_named("static"), self.container, self.notes)
        self.tender = Tender(self.container, self.notes)
        self.reporter = Reporter(PIPELINE, self.container, self.loop, self.tender, self.notes)


def decision(verdict: str = "hold") -> Decision:
    proposal = JobProposal("x", 2, 5, 4, "none", "It needs five.", "5 = 5", EVIDENCE)
    return Decision("d-1", 5.0, "penstock", verdict, "All is well.", (proposal,))  # type: ignore[arg-type]


def test_before_anything_is_measured_nothing_is_made_up() -> None:
    desk = Desk()
    status = desk.reporter.status(7.0)
    assert (status.at, status.phase, status.slots, status.rss_bytes, status.decision) == (
        7.0,
        "starting",
        32,
        0,
        "",
    )
    x, y = status.jobs
    assert (x.threads, x.proposed, y.threads, x.backlog, x.lag_seconds) == (2, 2, 3, 0.0, 0.0)
    assert all(math.isnan(n) for n in (x.rate_in, x.rate_out, x.rate_offered, x.capacity, x.batch_seconds))


def test_each_step_writes_one_status() -> None:
    desk = Desk()
    assert desk.reporter.step(7.0) == 7.0 + STATUS_SECONDS
    assert [status.at for status in desk.notes.of(RunStatus)] == [7.0]


def test_a_job_is_shown_by_its_newest_window() -> None:
    desk = Desk()
    held = window(
        "x", one_stage(0.001), 6_000.0, 2, topic="a", out={"b": 12_000.0}, production_rates={"a": 700.0}
    )
    desk.loop.seen = Seen({"x": held}, {"x": 1_200.0}, sample_of(9.0))
    desk.container.tallies = {"x": (12, 3, 1)}
    desk.reporter.phase = "running"
    status = desk.reporter.status(9.0)
    x = status.jobs[0]
    assert (x.rate_in, x.rate_out, x.rate_offered) == (600.0, 1_200.0, 700.0)
    assert x.capacity == pytest.approx(2_000.0) and x.lag_seconds == 2.0 and x.backlog == 1_200.0
    assert x.slo_lag_seconds == 30.0
    assert (x.batches, x.dead_letters, x.restarts) == (12, 3, 1)
    assert (status.heap_used_bytes, status.heap_max_bytes, status.phase) == (10, 30, "running")


def lag_of(
    desk: Desk,
    *,
    taken: float | None,
    growing: bool = False,
    carries: float | None = None,
    verdict: str = "hold",
) -> float:
    """Of 1,200 records of backlog, with a window that took in so much a second and a decision about 2 threads."""
    windows = {}
    if taken is not None:
        held = window("x", one_stage(0.001), taken * 10, 2, topic="a")
        windows["x"] = replace(held, growing=growing)
    told = None
    if carries is not None:
        cost = StageNeed(0, 1.0, None, 0.0, 0.0, record_seconds=1.9 * 2 / 2.0 / carries)
        told = decision(verdict)
        told = replace(
            told, proposals=(replace(told.proposals[0], evidence=replace(EVIDENCE, stages=(cost,))),)
        )
    desk.loop.seen = Seen(windows, {"x": 1_200.0}, sample_of(9.0), told)
    return desk.reporter.status(9.0).jobs[0].lag_seconds


def test_a_job_without_input_takes_in_nothing_after_a_while() -> None:
    desk = Desk()
    held = window("x", one_stage(0.001), 6_000.0, 2, topic="a", production_rates={"a": 700.0})
    for backlog, later, rate in ((0.0, 5.0, 600.0), (0.0, 60.0, 0.0), (9.0, 60.0, 600.0)):
        desk.loop.seen = Seen({"x": held}, {"x": backlog}, None)
        x = desk.reporter.status(held.ended_at + later).jobs[0]
        assert x.rate_in == rate and (x.rate_offered == 0.0) == (rate == 0.0)


def test_a_lag_is_not_known_before_a_rate_is() -> None:
    assert math.isnan(lag_of(Desk(), taken=None))
    assert math.isnan(lag_of(Desk(), taken=2.0, growing=True))


def test_a_lag_is_by_the_best_rate_that_is_known() -> None:
    assert lag_of(Desk(), taken=600.0) == 2.0
    assert lag_of(Desk(), taken=600.0, carries=1_200.0) == pytest.approx(1.0)
    assert lag_of(Desk(), taken=600.0, carries=300.0) == 2.0
    assert lag_of(Desk(), taken=2.0, growing=True, carries=400.0) == pytest.approx(3.0)
    assert lag_of(Desk(), taken=2.0, carries=400.0, verdict="observe") == pytest.approx(3.0), (
        "right after a change the newest window is of before it"
    )


def test_a_window_that_took_in_nothing_tells_no_rate() -> None:
    assert math.isnan(lag_of(Desk(), taken=0.0))
    assert lag_of(Desk(), taken=0.0, carries=400.0) == pytest.approx(3.0)


def test_the_newest_decision_speaks_of_each_job() -> None:
    desk = Desk()
    desk.loop.seen = Seen(decision=decision(), changed=decision("scale"))
    status = desk.reporter.status(9.0)
    x, y = status.jobs
    assert (x.proposed, x.note, y.proposed, y.note) == (5, "It needs five.", 3, "")
    assert status.decision == "All is well."


def test_while_rates_settle_nothing_is_proposed() -> None:
    desk = Desk()
    desk.loop.seen = Seen(decision=decision("observe"))
    assert [j.proposed for j in desk.reporter.status(9.0).jobs] == [2, 3]


def test_a_newer_decision_replaces_the_words_of_the_last() -> None:
    desk = Desk()
    desk.loop.seen = Seen(decision=decision())
    desk.reporter.status(9.0)
    desk.loop.seen = Seen(decision=None)
    assert desk.reporter.status(10.0).jobs[0].note == ""


@pytest.mark.parametrize(
    ("state", "shown"), [("failed", True), ("fenced", True), ("restarting", True), ("running", False)]
)
def test_why_a_job_does_not_run_stands_before_what_was_decided(state: JobState, shown: bool) -> None:
    desk = Desk()
    desk.container.events = [
        RunEvent(1.0, "failed", "x-0 failed: no disk.", "x"),
        RunEvent(1.0, "started", "y.", "y"),
    ]
    desk.container.states = {"x": state}
    assert desk.tender.step(1.0) == 1.0 + TEND_SECONDS
    desk.loop.seen = Seen(decision=decision())
    x, y = desk.reporter.status(9.0).jobs
    assert x.state == state and x.note == ("x-0 failed: no disk." if shown else "It needs five.")
    assert y.note == ""


def test_what_happens_to_tasks_is_kept_in_order() -> None:
    desk = Desk()
    told = [RunEvent(1.0, kind, kind, "x") for kind in ("failed", "restarted", "fenced")]
    desk.container.events = list(told)
    desk.tender.step(1.0)
    desk.tender.step(2.0)
    assert desk.notes.of(RunEvent) == told and desk.tender.troubles == {"x": "fenced"}
