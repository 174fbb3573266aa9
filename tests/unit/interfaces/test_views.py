"""How a run is seen while it goes on, and how it is ended: plain lines, one picture, Ctrl-C once and twice."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from penstock.interfaces.cli.views import PlainView, draw_run
from penstock.interfaces.cli.watch import Interrupts, watch
from penstock.model.status import RunHeader, RunHistory, RunStatus


def picture(header: RunHeader, status: RunStatus, said: str = "", width: int = 130) -> str:
    console = Console(width=width, color_system=None)
    with console.capture() as capture:
        console.print(draw_run(header, status, said, width))
    return capture.get()


def test_one_picture_has_all_that_matters(history: RunHistory) -> None:
    status = replace(history.statuses[60], decision="Threads: split 1 -> 11.")
    drawn = picture(history.header, status, "draining now")
    for text in (
        "wordcount  running  01:00",
        "sentences → split → words → count → counts",
        "strategy penstock",
        "last decision  Threads: split 1 -> 11.",
        "draining now",
        "threads on 32 slots",
        "Ctrl-C drains",
    ):
        assert text in drawn, text
    assert drawn.count("running") >= 3


def test_a_picture_of_unknown_numbers_and_odd_words_is_drawn(history: RunHistory) -> None:
    status = history.statuses[0]
    odd = replace(status, jobs=(replace(status.jobs[0], note="[bold]x[/] failed [", state="failed"),))
    assert "[bold]x[/] failed [" in picture(history.header, odd)


@pytest.mark.parametrize("width", [20, 60, 300])
def test_a_picture_fits_any_terminal(history: RunHistory, width: int) -> None:
    lines = picture(history.header, history.statuses[60], width=width).splitlines()
    assert lines and max(len(line) for line in lines) <= width


def test_no_word_is_broken_at_a_hundred_columns(history: RunHistory) -> None:
    """What can best be missed is left out instead."""
    status = history.statuses[30]
    jobs = tuple(replace(job, proposed=40, backlog=123_456.0, restarts=2) for job in status.jobs)
    narrow = picture(history.header, replace(status, jobs=jobs), width=100)
    table = [line for line in narrow.splitlines() if "running (2 restarts)" in line]
    assert len(table) == 2 and all("→ 40" in line and "123,456" in line for line in table)
    assert "BATCHES" not in narrow and "LAG" in narrow and "THREADS" in narrow
    assert "BATCHES" in picture(history.header, status, width=200)


@pytest.mark.parametrize("width", [60, 100, 240])
def test_a_key_that_the_terminal_shows_does_not_wrap(history: RunHistory, width: int) -> None:
    """`^C` twice behind the last line: a picture that is redrawn in place would leave a line of itself."""
    lines = picture(history.header, history.statuses[60], width=width).splitlines()
    assert max(len(line.rstrip()) for line in lines) <= width - 4


def test_plain_lines_say_each_change_once(history: RunHistory) -> None:
    lines: list[str] = []
    with PlainView(history.header, lines.append) as view:
        for status in history.statuses:
            view.show(status)
        view.say("done")
    assert lines[0] == "sentences → split → words → count → counts" and lines[-1] == "done"
    changed = [line for line in lines if "split: threads" in line]
    assert [line.split(" (")[0] for line in changed] == [
        "00:21 split: threads 1 -> 11",
        "00:41 split: threads 11 -> 10",
        "01:15 split: threads 10 -> 5",
    ]
    assert len(lines) < 20


class Silent:
    """A view that keeps what it is told."""

    def __init__(self) -> None:
        self.statuses: list[RunStatus] = []
        self.said: list[str] = []

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        return None

    def show(self, status: RunStatus) -> None:
        self.statuses.append(status)

    def say(self, text: str) -> None:
        self.said.append(text)


@pytest.mark.parametrize("phase", ["ended", "failed"])
def test_a_run_that_is_over_is_left_alone(make_run: Any, phase: str) -> None:
    run, view = make_run(phase), Silent()
    status, unclean = watch(run, view, None, Interrupts())
    assert (status.phase, unclean, run.drained, len(view.statuses)) == (phase, "", False, 1)


def test_one_interrupt_drains(make_run: Any) -> None:
    run, view, interrupts = make_run("running"), Silent(), Interrupts()
    interrupts.count = 1
    _, unclean = watch(run, view, None, interrupts)
    assert run.drained and unclean == "" and "Ctrl-C again stops at once" in view.said[0]


def test_when_its_time_is_over_one_interrupt_stops_at_once(make_run: Any) -> None:
    run, view = make_run("running"), Silent()
    watch(run, view, 0.0, Interrupts())
    assert run.drained and view.said == ["draining: tasks finish their batch; Ctrl-C stops at once"]


def test_a_second_interrupt_stops_at_once(make_run: Any) -> None:
    over, interrupts = threading.Event(), Interrupts()

    def again() -> None:
        interrupts.count = 2

    run = make_run("running", {2: again})
    run.drain_work = lambda: over.wait(60)
    interrupts.count = 1
    status, unclean = watch(run, Silent(), None, interrupts)
    over.set()
    assert unclean.startswith("Stopped at once") and status.message == unclean
    assert {job.state for job in status.jobs} == {"stopped"}


def test_an_error_of_draining_is_raised_where_the_user_is(make_run: Any) -> None:
    def broken() -> bool:
        raise OSError("no disk")

    run, interrupts = make_run("running"), Interrupts()
    run.drain_work, interrupts.count = broken, 1
    with pytest.raises(OSError, match="no disk"):
        watch(run, Silent(), None, interrupts)


def test_signals_are_given_back() -> None:
    import signal

    before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
    with Interrupts() as interrupts:
        interrupts.take_over()
        signal.raise_signal(signal.SIGTERM)
        assert interrupts.count == 1
        interrupts.wait(0.0)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)] == before
