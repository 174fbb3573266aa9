"""Which jars are fetched for Kafka, from where, and what is said when none can be had. Nothing is downloaded."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from penstock.app import kafka_jars
from penstock.app.kafka_jars import CONNECTOR, Artifact, fetch_kafka_jars, tried_set
from penstock.model.errors import EnvironmentProblem

Fetch = Callable[[Sequence[Artifact], Path], str]


def having(*versions: str) -> Fetch:
    """A repository that has some versions of the connector."""

    def fetch(artifacts: Sequence[Artifact], folder: Path) -> str:
        if artifacts[0].version not in versions:
            return f"no {artifacts[0]} here"
        (folder / "jars").mkdir()
        for artifact in artifacts:
            (folder / "jars" / f"{artifact.name}-{artifact.version}.jar").write_text(str(artifact))
        return ""

    return fetch


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_jars.importlib.metadata, "version", lambda name: "9.9.9")
    monkeypatch.setattr(kafka_jars.shutil, "which", lambda name: "/usr/bin/mvn")


def test_the_tried_set_is_the_one_that_our_jar_is_compiled_against() -> None:
    found = tried_set()
    assert found[0].name == CONNECTOR
    assert {a.name for a in found} >= {CONNECTOR, "kafka-clients", "commons-pool2"}
    assert all(re.fullmatch(r"\d+(\.\d+)+", a.version) for a in found)


def test_the_version_of_the_installed_spark_comes_first(
    installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kafka_jars, "_by_maven", having("9.9.9", tried_set()[0].version))
    said: list[str] = []
    jars = fetch_kafka_jars(tmp_path / "jars", said.append)
    assert [jar.name for jar in jars] == [f"{CONNECTOR}-9.9.9.jar"]
    assert jars[0].parent == tmp_path / "jars" and jars[0].is_file()
    assert "9.9.9" in said[0] and "Taking" in said[-1]


def test_the_tried_set_is_taken_where_that_version_is_not_there(
    installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kafka_jars, "_by_maven", having(tried_set()[0].version))
    said: list[str] = []
    jars = fetch_kafka_jars(tmp_path, said.append)
    assert len(jars) == len(tried_set())
    assert any("9.9.9 is not to be had" in text for text in said)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(jar.name for jar in jars)


def test_where_none_is_there_the_sentence_names_the_jars(
    installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kafka_jars, "_by_maven", having())
    with pytest.raises(
        EnvironmentProblem, match=r"could not be fetched.*copy these jars.*kafka-clients"
    ) as told:
        fetch_kafka_jars(tmp_path / "jars", lambda text: None)
    assert "no org.apache.spark" in str(told.value)
    assert not (tmp_path / "jars").exists()


def test_without_maven_sparks_own_resolver_is_asked(
    installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kafka_jars.shutil, "which", lambda name: None)
    monkeypatch.setattr(kafka_jars, "_by_maven", having())
    monkeypatch.setattr(kafka_jars, "_by_spark", having("9.9.9"))
    assert fetch_kafka_jars(tmp_path, lambda text: None)


def test_a_folder_that_cannot_be_written_is_a_sentence(
    installed: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(kafka_jars, "_by_maven", having("9.9.9"))
    (tmp_path / "jars").write_text("a file")
    with pytest.raises(EnvironmentProblem, match=r"could not be written to .*jars"):
        fetch_kafka_jars(tmp_path / "jars", lambda text: None)
