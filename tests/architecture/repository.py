"""What the architecture tests look at: the project's files, and the Python in them."""

from __future__ import annotations

import ast
import subprocess
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "penstock"
CODE = ("src", "tests", "examples", "jvm")
_SKIPPED = (".venv", ".git", "node_modules")


@dataclass(frozen=True)
class Module:
    """One Python file: its path from the root, its text and its tree."""

    path: str
    text: str
    tree: ast.Module

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())


@cache
def files() -> tuple[str, ...]:
    """All files that are tracked, or would be; without git, all that lie here."""
    asked = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(asked, capture_output=True, check=True, text=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        found = (path for path in ROOT.rglob("*") if not set(_SKIPPED) & set(path.parts))
        listed = [path.relative_to(ROOT).as_posix() for path in found]
    return tuple(sorted(name for name in set(listed) if name and (ROOT / name).is_file()))


@cache
def texts() -> dict[str, str]:
    """The text of every file that is text."""
    found: dict[str, str] = {}
    for name in files():
        try:
            found[name] = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
    return found


@cache
def modules() -> tuple[Module, ...]:
    """Every Python file of ours."""
    return tuple(
        Module(name, text, ast.parse(text))
        for name, text in texts().items()
        if name.endswith(".py") and name.split("/")[0] in CODE
    )


def functions() -> Iterator[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Every function, methods and inner ones among them."""
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield module, node


def fields() -> Iterator[tuple[Module, str, str, str]]:
    """(module, class, field, annotation) of every declared field."""
    for module in modules():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.ClassDef):
                continue
            for child in node.body:
                if isinstance(child, ast.AnnAssign) and isinstance(child.target, ast.Name):
                    yield module, node.name, child.target.id, ast.unparse(child.annotation)


@cache
def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def guides() -> dict[str, str]:
    """The pages that people read."""
    pages = ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md")
    return {
        name: text
        for name, text in texts().items()
        if name.endswith(".md") and (name in pages or name.startswith(("docs/", "examples/")))
    }
