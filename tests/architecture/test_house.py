"""What the repository holds besides code: rooms as declared, a jar made of its sources, and nothing of a machine."""

from __future__ import annotations

import importlib.util
import re
from types import ModuleType

from architecture.repository import ROOT, SOURCE, pyproject, texts

OWN = "tests/architecture/"
HOSTS = re.compile(r"https?://([^\s/:\"'`)>\]]+)")
KNOWN_HOSTS = {
    "maven.apache.org": "the name of a POM's format",
    "www.w3.org": "the name of SVG's format",
    "www.apache.org": "the licence",
    "keepachangelog.com": "the changelog's form",
    "semver.org": "the changelog's form",
}
"""Every host that a file of ours names, with its reason: a registry's address belongs to who installs."""
LOCAL = ("localhost", "127.0.0.1", "example", "host", "{")
HOMES = re.compile(r"(?<![\w.$}])/(?:home|root|work|Users|opt|mnt|workspace)/\w")
LEFT_OVER = re.compile(r"\b(?:TODO|FIXME|XXX|HACK)\b")


def _lines(pattern: re.Pattern[str]) -> list[str]:
    return [
        f"{path}:{number}: {line.strip()[:100]}"
        for path, text in texts().items()
        if not path.startswith(OWN) and path != "LICENSE"
        for number, line in enumerate(text.splitlines(), start=1)
        if pattern.search(line)
    ]


def test_no_address_of_a_registry() -> None:
    unknown: list[str] = []
    for path, text in texts().items():
        for host in HOSTS.findall(text) if path != "LICENSE" and not path.startswith(OWN) else ():
            if host not in KNOWN_HOSTS and not host.startswith(LOCAL):
                unknown.append(f"{path}: {host}")
    assert not unknown


def test_nothing_of_one_machine() -> None:
    assert not _lines(HOMES)


def test_nothing_is_left_for_later_in_a_comment() -> None:
    assert not _lines(LEFT_OVER)


def _layers() -> set[str]:
    contracts = pyproject()["tool"]["importlinter"]["contracts"]
    house = next(contract for contract in contracts if contract["type"] == "layers")
    assert house["containers"] == ["penstock"]
    assert house["exhaustive"] is True
    return {room.strip() for layer in house["layers"] for room in layer.split("|")}


def test_every_room_has_its_place_among_the_layers() -> None:
    rooms = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert _layers() == rooms


def test_the_page_about_the_house_names_the_same_rooms() -> None:
    page = texts()["ARCHITECTURE.md"]
    named = set(re.findall(r"^\| `([a-z]+)/` \|", page, re.MULTILINE))
    assert named == _layers()
    core = {path.parent.name for path in SOURCE.glob("core/*/__init__.py")}
    assert set(re.findall(r"^\| `core/([a-z]+)/` \|", page, re.MULTILINE)) == core


def test_every_dependency_is_pinned() -> None:
    project = pyproject()["project"]
    wanted = [*project["dependencies"], *(r for e in project["optional-dependencies"].values() for r in e)]
    wanted += pyproject()["build-system"]["requires"]
    pinned = re.findall(r"^([\w.-]+)==\S+$", texts()["constraints.txt"], re.MULTILINE)
    names = {_plain(name) for name in pinned}
    assert not [each for each in wanted if _plain(re.split(r"[\[<>=~! ]", each)[0]) not in names]
    rest = [line for line in texts()["constraints.txt"].splitlines() if line and not line.startswith("#")]
    assert len(rest) == len(pinned), "nothing but exact versions"


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_jar_is_made_of_its_sources() -> None:
    build = _load_build()
    assert build.noted_hash() == build.sources_hash(), "run make jar"


def _load_build() -> ModuleType:
    spec = importlib.util.spec_from_file_location("jvm_build", ROOT / "jvm" / "build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
