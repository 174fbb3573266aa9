"""Writes docs/lifecycles.md from the transition tables, so that a diagram never shows a way that the code refuses.

`python -m penstock.app.lifecycles_doc` prints it; `make docs` writes all generated pages, and a test compares them.
"""

from __future__ import annotations

from collections.abc import Iterable

from penstock.core.jobs import passes, task_lifecycle

_HEAD = """# Lifecycles

Written by `make docs` from the transition tables in the code; a test fails when this page and they differ. A pair of
state and event that is not drawn is refused with a sentence, and nothing changes.
"""
_WAITS = (
    f"after {task_lifecycle.BACKOFF_FIRST_SECONDS:g} s, then twice as long each time, "
    f"{task_lifecycle.BACKOFF_MOST_SECONDS:g} s at most"
)
_TASK = f"""## A task

One run of a job's query over its share of the partitions. A task that failed starts again by itself, {_WAITS}.
With `--available-now` it is given up after {passes.FRUITLESS_STARTS} starts in a row that committed no batch.
A task that is `fenced` never starts again: another run of it writes now.
"""


def lifecycles_page() -> str:
    """The whole page."""
    return f"{_HEAD}\n{_TASK}\n{draw(task_lifecycle.TRANSITIONS.items(), 'new')}"


def draw(transitions: Iterable[tuple[tuple[str, str], str]], first: str) -> str:
    """Transitions ((state, event), state after it) as a Mermaid diagram; ways between two states share an arrow."""
    arrows: dict[tuple[str, str], list[str]] = {}
    for (state, event), following in transitions:
        arrows.setdefault((state, following), []).append(event)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {first}"]
    lines += [f"    {start} --> {end}: {', '.join(events)}" for (start, end), events in arrows.items()]
    return "\n".join([*lines, "```", ""])


if __name__ == "__main__":
    print(lifecycles_page(), end="")
