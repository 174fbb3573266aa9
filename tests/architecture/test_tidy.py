"""Style that a machine can hold: sizes, docstrings, names with units, one word for one thing.

An exemption stands in a table with its reason; one that is no longer needed fails too, so the tables stay true.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from architecture.repository import SOURCE, fields, functions, modules, texts

AIM_LINES, EXPLAIN_LINES, NEVER_LINES = 150, 400, 600
FUNCTION_LINES, PARAMETERS = 70, 6

LONG_MODULES: Mapping[str, str] = {
    "tests/unit/core/test_controller.py": "every term of the controller, each with a small scene of its own",
    "tests/unit/core/test_pacing.py": "every knob of the scaling manager, each with a small scene of its own",
}
"""Past 400 lines, each with its reason."""

LONG_FUNCTIONS: Mapping[str, str] = {
    "tests/unit/adapters/test_journal.py:entries": "data: one journal entry of every kind",
    "tests/unit/interfaces/conftest.py:sample_history": "data: a whole run as a report reads it",
}

MANY_PARAMETERS: Mapping[str, str] = {
    "src/penstock/authoring/declare.py:topic": "one keyword per field of a topic, as its owner writes them",
    "src/penstock/interfaces/cli/explain.py:explain": "one parameter per option",
    "src/penstock/interfaces/cli/load.py:load": "one parameter per option",
    "src/penstock/interfaces/cli/probe.py:probe": "one parameter per option",
    "src/penstock/interfaces/cli/run.py:run": "one parameter per option",
    "src/penstock/interfaces/cli/topic.py:produce": "one parameter per option",
    "src/penstock/interfaces/cli/topic.py:tail": "one parameter per option",
}

SILENT_NOQA: Mapping[str, str] = {
    "src/penstock/spark/daemon.py": "imported for its effect, as the module's docstring says",
    "src/penstock/spark/hub.py": "methods are named as the Java side calls them",
}
"""Files whose `noqa` need no reason on the line, since one reason holds for all."""

NO_NAMES = {"utils", "util", "helpers", "helper", "common", "manager", "misc"}
BARE = (
    "time",
    "size",
    "duration",
    "interval",
    "timeout",
    "delay",
    "age",
    "latency",
    "period",
    "memory",
    "wait",
    "elapsed",
    "lag",
)
NUMBERS = {"float", "int", "float | None", "int | None"}
WORDS: Mapping[str, str] = {
    r"\bepoch_?ids?\b|\bbatch_?epochs?\b": "a micro-batch has a batch id; an epoch is one run of a task",
    r"\bkey_?ranges?\b|\bmini_?partitions?\b|\bkeygroups?\b": "key group",
    r"\bmicrobatch(es)?\b": "batch, or micro-batch",
    r"\bconsumer_?lag\b": "backlog (records) or time_lagged (seconds)",
}
"""Words that mean what another word already means here, and that word."""


def _settle(found: Mapping[str, str], exempt: Mapping[str, str]) -> list[str]:
    """What is wrong and not exempt, and what is exempt and no longer wrong."""
    wrong = [f"{name}: {why}" for name, why in found.items() if name not in exempt]
    there = {name for name in exempt if name.split(":")[0] in texts()}
    return wrong + [f"{name}: needs its exemption no longer; strike it" for name in there - set(found)]


def test_a_module_is_about_one_thing() -> None:
    over = {m.path: f"{m.lines} lines" for m in modules() if m.lines > EXPLAIN_LINES}
    assert not _settle(over, LONG_MODULES)
    assert not [f"{m.path}: {m.lines} lines" for m in modules() if m.lines > NEVER_LINES]


def test_modules_of_the_product_are_small_on_the_whole() -> None:
    ours = sorted(m.lines for m in modules() if m.path.startswith("src/"))
    assert ours[len(ours) // 2] <= AIM_LINES


def test_a_function_fits_on_a_screen() -> None:
    found: dict[str, str] = {}
    for module, function in functions():
        lines = (function.end_lineno or 0) - function.lineno + 1
        if lines >= FUNCTION_LINES:
            found[f"{module.path}:{function.name}"] = f"{lines} lines"
    assert not _settle(found, LONG_FUNCTIONS)


def test_a_function_of_the_product_takes_few_parameters() -> None:
    found: dict[str, str] = {}
    for module, function in functions():
        if not module.path.startswith("src/"):
            continue
        names = [a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)]
        count = len(names) - (names[:1] in (["self"], ["cls"]))
        if count > PARAMETERS:
            found[f"{module.path}:{function.name}"] = f"{count} parameters"
    assert not _settle(found, MANY_PARAMETERS)


def test_every_module_says_why_it_exists() -> None:
    """An empty `__init__.py` is no module to explain."""
    assert not [m.path for m in modules() if m.text.strip() and not ast.get_docstring(m.tree)]


def test_no_module_is_named_for_what_is_left_over() -> None:
    parts = {
        path: {p.removesuffix(".py") for p in path.split("/")} for path in texts() if path.endswith(".py")
    }
    assert not [path for path, names in parts.items() if names & NO_NAMES]


def test_a_number_carries_its_unit_in_its_name() -> None:
    bare = re.compile(rf"(^|_)({'|'.join(BARE)})$")
    found = [
        f"{m.path}: {owner}.{name}: {kind}"
        for m, owner, name, kind in fields()
        if kind in NUMBERS and bare.search(name)
    ]
    assert not found, "end it with its unit, like lag_seconds or heap_bytes"


def test_one_word_has_one_meaning() -> None:
    own = "tests/architecture/test_tidy.py"
    found: list[str] = []
    for path, text in texts().items():
        if path == own or not path.endswith((".py", ".java", ".md")):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            for pattern, word in WORDS.items():
                if re.search(pattern, line, re.IGNORECASE):
                    found.append(f"{path}:{number}: {line.strip()[:80]} -> {word}")
    assert not found


def test_an_ignored_rule_says_why() -> None:
    silent: dict[str, str] = {}
    for path, text in texts().items():
        if not (path.startswith("src/") and path.endswith(".py")):
            continue
        for number, line in enumerate(text.splitlines(), start=1):
            if re.search(r"#\s*noqa", line) and not re.search(r"noqa: [A-Z0-9, ]+(-|  )\s*\S", line):
                silent[path] = f"line {number} ignores a rule without a reason"
    assert not _settle(silent, SILENT_NOQA)


def test_every_room_starts_with_an_init() -> None:
    """A folder without one would be a namespace that the import contracts do not see."""
    rooms = {p.parent for p in SOURCE.rglob("*.py")}
    assert not [str(room) for room in rooms if not (room / "__init__.py").is_file()]
