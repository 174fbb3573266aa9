"""Files of a task's state that no version refers to: what killed runs copied and never named.

Spark keeps a state's versions as <version>.zip, each with the names of the files in SSTs/ and logs/ that belong to it. It
removes what no version names by itself only once it has more versions than it retains, so a job that is killed often
would grow. Rules: only before a run begins; a version that cannot be read leaves all of its store alone; young files stay,
since an executor whose driver was killed may be about to name them.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

GRACE_SECONDS = 3600.0
"""Age from which a file that no version names is left over."""
_FOLDERS = ("SSTs", "logs")


def sweep_state(checkpoint: Path, now: float) -> int:
    """Remove what no version of any state of this task refers to; how many files."""
    swept = 0
    for store in {folder.parent for name in _FOLDERS for folder in (checkpoint / "state").rglob(name)}:
        try:
            named = {name for version in store.glob("*.zip") for name in _names_in(version)}
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile):
            continue
        for file in _old_files(store, now):
            if file.name not in named:
                file.unlink(missing_ok=True)
                swept += 1
    return swept


def _old_files(store: Path, now: float) -> list[Path]:
    files = [file for name in _FOLDERS for file in (store / name).glob("[!.]*") if file.is_file()]
    return [file for file in files if now - file.stat().st_mtime >= GRACE_SECONDS]


def _names_in(version: Path) -> Iterator[str]:
    """The files that a version needs: `v1`, then JSON."""
    with zipfile.ZipFile(version) as held:
        head, _, text = held.read("metadata").decode().partition("\n")
    if head != "v1":
        raise ValueError(f"{version} is of another form")
    told: dict[str, Any] = json.loads(text)
    for file in told["sstFiles"]:
        yield file["dfsSstFileName"]
    for file in told.get("logFiles") or ():
        yield file["dfsLogFileName"]
