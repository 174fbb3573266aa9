"""Only what provably belongs to no version of a state is removed."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import pytest

from penstock.spark.state_files import GRACE_SECONDS, sweep_state

NOW = 1_000_000.0


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Versions 1 and 2 of one state; an old file that none names, a young one, and an old log."""
    made = tmp_path / "state" / "0" / "3" / "default"
    for name in (
        "SSTs/a-1.sst",
        "SSTs/b-2.sst",
        "SSTs/left-3.sst",
        "SSTs/young-4.sst",
        "SSTs/.a-1.sst.crc",
        "logs/c-5.log",
        "logs/left-6.log",
    ):
        file = made / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(name)
        age = GRACE_SECONDS - 1 if "young" in name else GRACE_SECONDS
        os.utime(file, (NOW - age, NOW - age))
    write_version(made, "1", ["a-1.sst"])
    write_version(made, "2_f27a", ["a-1.sst", "b-2.sst"], ["c-5.log"])
    return made


def write_version(
    store: Path, name: str, files: list[str], logs: list[str] | None = None, head: str = "v1"
) -> None:
    told: dict[str, object] = {"sstFiles": [{"localFileName": "x", "dfsSstFileName": f} for f in files]}
    if logs:
        told["logFiles"] = [{"localFileName": "x", "dfsLogFileName": f} for f in logs]
    with zipfile.ZipFile(store / f"{name}.zip", "w") as held:
        held.writestr("metadata", f"{head}\n{json.dumps(told)}")


def names(store: Path) -> set[str]:
    return {file.name for file in store.rglob("*") if file.is_file() and file.suffix != ".zip"}


def test_old_files_that_no_version_names_go(tmp_path: Path, store: Path) -> None:
    assert sweep_state(tmp_path, NOW) == 2
    assert names(store) == {"a-1.sst", ".a-1.sst.crc", "b-2.sst", "young-4.sst", "c-5.log"}
    assert sweep_state(tmp_path, NOW) == 0


@pytest.mark.parametrize("broken", ["torn", "newer form", "no metadata"])
def test_a_version_that_cannot_be_read_leaves_its_store_alone(
    tmp_path: Path, store: Path, broken: str
) -> None:
    before = names(store)
    if broken == "torn":
        (store / "3.zip").write_bytes(b"PK")
    elif broken == "newer form":
        write_version(store, "3", [], head="v2")
    else:
        with zipfile.ZipFile(store / "3.zip", "w") as held:
            held.writestr("other", "")
    assert sweep_state(tmp_path, NOW) == 0 and names(store) == before


def test_a_task_without_state_needs_no_sweep(tmp_path: Path) -> None:
    assert sweep_state(tmp_path, NOW) == 0
