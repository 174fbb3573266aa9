"""Pages for people stay true: what they name exists, what they tell to type is understood, what is generated is fresh."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Any, cast

import pytest
import typer
from pydantic import BaseModel

from architecture.repository import ROOT, guides, texts
from penstock.app.lifecycles_doc import lifecycles_page
from penstock.app.sections import SECTIONS
from penstock.app.settings_doc import settings_page
from penstock.interfaces.cli import build_app
from penstock.model.jobs import JobOptions, ScalingKnobs
from penstock.model.topics import TopicSpec
from penstock.ports.clock import Clock
from penstock.ports.services import Services

OPTIONS: tuple[type[BaseModel], ...] = (*SECTIONS.values(), JobOptions, ScalingKnobs, TopicSpec)
OWNERS = {
    "penstock.toml": "the settings of a project",
    "pipeline.py": "the pipeline of a project",
    "report.html": "the report of a run",
    ".penstock/": "the work folder of a project",
    "journal.jsonl": "the journal of a run",
}
"""Names on pages that are files of the reader's, not ours."""
_SUFFIXES = (".py", ".md", ".toml", ".txt", ".java", ".jar", ".png", ".html", ".jsonl")
_PATH = re.compile(r"[\w.\-]+(?:/[\w.\-]+)*/?")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_SHELL = ("bash", "console", "sh", "shell")
COUNTED = ("threads", "tasks", "partitions", "slots", "windows", "records", "executors", "min", "max")
"""Whole numbers that count what their own name, or their section's, says."""
PURE = {
    "priority": "a rank",
    "max_ineffective": "a count of actions",
    "target_ratio": "a share",
    "roll_back_loss": "a share",
    "scale_in_share": "a share",
}


# --- what is named exists ---


def _named_paths(text: str) -> Iterator[str]:
    """Texts in backquotes and targets of links that look like paths."""
    plain = _FENCE.sub("", text)
    for name in re.findall(r"(?<!`)`([^`\n]+)`(?!`)", plain):
        if _PATH.fullmatch(name) and ("/" in name or name.endswith(_SUFFIXES)):
            yield name
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", plain):
        if "://" not in target:
            yield target


@pytest.mark.parametrize("page", sorted(guides()))
def test_every_path_that_is_named_exists(page: str) -> None:
    beside = (ROOT / page).parent
    places = (ROOT, beside, ROOT / "src" / "penstock")
    named = [name for name in _named_paths(guides()[page]) if name not in OWNERS]
    assert not [name for name in named if not any((place / name).exists() for place in places)]


# --- what is told to type is understood ---


def _shown_lines(text: str) -> Iterator[str]:
    """Lines of shell blocks, continued ones joined, prompts taken off; and commands in backquotes."""
    for kind, block in _FENCE.findall(text):
        if kind in _SHELL:
            yield from (line.strip().removeprefix("$ ") for line in block.replace("\\\n", " ").splitlines())
    yield from re.findall(r"(?<!`)`(penstock [^`\n]+|make [^`\n]+)`(?!`)", _FENCE.sub("", text))


def _pages_and_code() -> dict[str, str]:
    code = {n: t for n, t in texts().items() if n.startswith("src/penstock/") and n.endswith(".py")}
    return {**guides(), **code}


def _told(program: str) -> list[tuple[str, str]]:
    """(place, line) of every line that starts with a program's name; in code also after `Example:`."""
    found: list[tuple[str, str]] = []
    for place, text in _pages_and_code().items():
        if place.endswith(".md"):
            lines = list(_shown_lines(text))
        else:
            lines = re.findall(r"^\s*Example: (.+)$", text, re.MULTILINE)
            lines += [line for line in _shown_lines(text) if "{" not in line]
        found += [(place, line) for line in lines if line.split(" ")[0] == program]
    return found


def _parse(words: list[str]) -> None:
    """Let the real commands read a line, without carrying it out."""
    app = build_app(cast("Services", None), cast("Clock", None))
    command: Any = typer.main.get_command(app)
    context: Any = command.make_context("penstock", list(words))
    while hasattr(command, "commands"):
        rest = [*getattr(context, "_protected_args", []), *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)


def test_every_command_on_a_page_is_understood() -> None:
    refused: list[str] = []
    told = _told("penstock")
    assert len(told) > 20
    for place, line in told:
        words = shlex.split(line, comments=True)[1:]
        words = words[: next((i for i, word in enumerate(words) if word in ("|", ">", "<", "&", "&&")), None)]
        if words in ([], ["..."]) or words[-1].endswith("..."):
            continue
        try:
            _parse(words)
        except typer.Exit:
            continue  # --help and --version end there
        except Exception as error:  # noqa: BLE001  every kind of refusal is a finding
            unfinished = type(error).__name__ in ("MissingParameter", "NoArgsIsHelpError")
            if unfinished and all(re.fullmatch(r"[a-z-]+", word) for word in words):
                continue  # a command that is only mentioned
            refused.append(f"{place}: {line}: {getattr(error, 'message', error)!r}")
    assert not refused


def test_a_wrong_option_would_be_seen() -> None:
    with pytest.raises(Exception, match="sideways"):
        _parse(["run", "examples/wordcount", "--sideways"])
    with pytest.raises(Exception, match="fly"):
        _parse(["topic", "fly"])


def test_every_target_of_make_on_a_page_is_there() -> None:
    targets = set(re.findall(r"^([a-z]+):", texts()["Makefile"], re.MULTILINE))
    told = [(place, line) for place, line in _told("make") if "make" in line]
    wrong = [
        f"{place}: {line}"
        for place, line in told
        for word in shlex.split(line, comments=True)[1:]
        if re.fullmatch(r"[a-z]+", word) and word not in targets
    ]
    assert not wrong


# --- what is generated is fresh ---


def test_the_page_of_settings_is_what_the_models_say() -> None:
    assert texts()["docs/settings.md"] == settings_page(), "run make docs"


def test_the_diagrams_are_what_the_tables_say() -> None:
    assert texts()["docs/lifecycles.md"] == lifecycles_page(), "run make docs"


@pytest.mark.parametrize("model", OPTIONS, ids=lambda model: model.__name__)
def test_every_option_says_what_it_is_and_in_which_unit(model: type[BaseModel]) -> None:
    silent: list[str] = []
    for name, info in model.model_fields.items():
        text = info.description or ""
        if name in ("name", "place"):
            continue
        if len(text.split()) < 2:
            silent.append(f"{name}: says nothing of itself")
        number = info.annotation in (int, float, int | None, float | None)
        unit = (
            name.endswith("_seconds")
            or "bytes" in name.split("_")
            or bool(set(COUNTED) & set(name.split("_")))
        )
        if (
            number
            and not unit
            and name not in PURE
            and not re.search(r"\((?:seconds|bytes|records|threads)\)", text)
        ):
            silent.append(f"{name}: has no unit, neither in its name nor in brackets")
    assert not silent


def test_the_page_of_settings_has_every_option() -> None:
    page = settings_page()
    rows = len(re.findall(r"^\| `", page, re.MULTILINE))
    left_out = len({"name", "place"}) + len({"scaling"})
    assert rows == sum(len(model.model_fields) for model in OPTIONS) - left_out
