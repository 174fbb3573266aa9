"""Loops in threads: what raises goes on and is told once, what is done ends, and stopping waits for a step under way."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from penstock.app.loops import PAUSE_SECONDS, Loops, in_words
from penstock.model.errors import MissingError

PATIENCE_SECONDS = 10.0
"""At most: what is waited for comes at once."""


class Leaping:
    """A clock that is ten seconds further at each look, so that nothing is waited for."""

    def __init__(self) -> None:
        self.at = 0.0

    def now(self) -> float:
        self.at += 10 * PAUSE_SECONDS
        return self.at


class Script:
    """A loop that does one thing after another; a result is when to wake."""

    def __init__(self, *steps: Callable[[], float | None]) -> None:
        self.steps, self.calls = list(steps), 0
        self.done = threading.Event()

    def step(self, now: float) -> float | None:
        self.calls += 1
        act = self.steps.pop(0)
        if not self.steps:
            self.done.set()
        return act()


def fails(error: Exception) -> Callable[[], float | None]:
    def act() -> float | None:
        raise error

    return act


def again() -> float | None:
    return 0.0


def ends() -> float | None:
    return None


def run(*steps: Callable[[], float | None]) -> tuple[Script, list[tuple[str, str]]]:
    told: list[tuple[str, str]] = []
    loops, script = Loops(Leaping(), lambda name, why: told.append((name, why))), Script(*steps)
    loops.start("upkeep", script)
    assert script.done.wait(PATIENCE_SECONDS)
    loops.stop()
    return script, told


def test_a_loop_is_stepped_until_it_is_done() -> None:
    script, told = run(again, again, again, ends)
    assert script.calls == 4 and told == []


def test_a_loop_that_raises_goes_on_and_each_new_text_is_told_once() -> None:
    full, torn = OSError("disk full"), ValueError("torn")
    _, told = run(fails(full), fails(full), again, fails(full), fails(torn), fails(torn), fails(full), ends)
    assert told == [
        ("upkeep", "OSError: disk full"),
        ("upkeep", "ValueError: torn"),
        ("upkeep", "OSError: disk full"),
    ]


def test_loops_step_each_in_its_own_thread() -> None:
    """One that waits keeps no other from going on."""
    release, loops = threading.Event(), Loops(Leaping(), lambda name, why: None)

    def wait() -> float | None:
        release.wait(PATIENCE_SECONDS)
        return None

    held, other = Script(wait), Script(again, ends)
    loops.start("held", held)
    loops.start("other", other)
    assert other.done.wait(PATIENCE_SECONDS)
    release.set()
    loops.stop()


def stopping(meanwhile: Callable[[], float | None]) -> tuple[list[str], list[tuple[str, str]]]:
    """Stop while a step is under way that ends only once stopping began."""
    order: list[str] = []
    told: list[tuple[str, str]] = []
    began, passed = threading.Event(), threading.Event()
    loops = Loops(Leaping(), lambda name, why: told.append((name, why)))

    class Slow:
        def step(self, now: float) -> float | None:
            began.set()
            loops._stopped.wait(PATIENCE_SECONDS)
            passed.wait(0.05)  # set at once where nobody waits for this step
            order.append("step")
            return meanwhile()

    loops.start("slow", Slow())
    assert began.wait(PATIENCE_SECONDS)
    loops.stop(PATIENCE_SECONDS)
    order.append("stopped")
    passed.set()
    return order, told


def test_stopping_waits_for_a_step_that_is_under_way_and_begins_no_other() -> None:
    assert stopping(again) == (["step", "stopped"], [])


def test_what_a_step_meets_while_all_is_taken_down_is_not_told() -> None:
    """The topics may be closed under it: that is no news."""
    assert stopping(fails(OSError("closed")))[1] == []


def test_a_loop_may_stop_all_loops() -> None:
    loops = Loops(Leaping(), lambda name, why: None)

    def stop() -> float | None:
        loops.stop()
        return 0.0

    script = Script(stop, again)
    loops.start("end", script)
    loops.stop()
    assert script.calls == 1


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (MissingError("There is no topic 'a'; create it.\nmore"), "There is no topic 'a'; create it."),
        (OSError("disk full\nat line 3"), "OSError: disk full"),
        (KeyError(), "KeyError: "),
    ],
)
def test_an_error_is_told_by_its_first_line(error: Exception, text: str) -> None:
    assert in_words(error) == text


def test_a_loop_goes_on_when_nobody_can_be_told() -> None:
    def fail() -> float:
        raise MissingError("nothing there")

    def deaf(name: str, text: str) -> None:
        raise OSError("the disk is full")

    script = Script(fail, fail, lambda: None)
    loops = Loops(Leaping(), deaf)
    loops.start("x", script)
    assert script.done.wait(PATIENCE_SECONDS)
    loops.stop()
    assert script.calls == 3
