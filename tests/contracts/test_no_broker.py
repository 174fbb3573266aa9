"""Where no broker can be had, its tests are skipped with a sentence; in CI they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from services.broker import NoBroker, broker_jars
from services.fixtures import skip_or_fail


def test_without_maven_the_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(NoBroker, match="install Maven"):
        broker_jars()


def test_it_skips_here_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no broker today"):
        skip_or_fail(NoBroker("no broker today"))
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="no broker today"):
        skip_or_fail(NoBroker("no broker today"))
