"""`penstock run examples/wordcount` moves between the embedded log, Kafka and a Spark master by its settings alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from e2e.commands import Commands, count_words, newest_counts
from penstock.spark.standalone import StandaloneCluster, WorkerSize
from services.broker import Broker
from services.fixtures import connector_jars

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(400)]

EXAMPLE = Path(__file__).parents[2] / "examples" / "wordcount"


@pytest.fixture
def kafka_settings(kafka_broker: Broker, tmp_path: Path) -> Mapping[str, str]:
    jars = ",".join(map(str, connector_jars()))
    return {
        "PENSTOCK_BUS_KIND": "kafka",
        "PENSTOCK_BUS_SERVERS": kafka_broker.servers,
        "PENSTOCK_SPARK_JARS": jars,
    }


@pytest.fixture
def master(tmp_path: Path) -> Iterator[str]:
    with StandaloneCluster(tmp_path / "cluster", 1, WorkerSize(slots=8, memory="3g")) as cluster:
        yield cluster.address


def check_run(commands: Commands, report: Path, *options: str) -> None:
    """Run it, give it work, end it with Ctrl-C, and hold the counts against the sentences."""
    running = commands.start("run", str(EXAMPLE), "--plain", "--report", str(report), *options)
    try:
        running.until(lambda line: "count: running" in line)
        load = commands.run(
            "load",
            "sentences",
            "--rate",
            "200/s",
            "--for",
            "8s",
            "--pipeline",
            str(EXAMPLE),
            "-p",
            str(EXAMPLE),
        )
        assert load.returncode == 0, load.stderr
        commands.wait_until_read("split", "count")
        running.interrupt()
        assert running.end() == 0, "\n".join(running.lines)
    finally:
        running.kill()
    sentences = commands.records("sentences")
    assert len(sentences) == 1600
    assert newest_counts(commands.records("counts")) == count_words(sentences)
    assert "<svg" in report.read_text()
    assert {line.split()[1] for line in running.lines if line.endswith("-> drained")} == {"split:", "count:"}
    explained = commands.json("explain", "count", "-p", str(EXAMPLE))
    assert explained["proposal"]["job"] == "count"


def test_embedded(tmp_path: Path) -> None:
    check_run(Commands(EXAMPLE, {"PENSTOCK_STORE_FOLDER": str(tmp_path / "work")}), tmp_path / "out.html")


@pytest.mark.kafka
def test_on_kafka(kafka_settings: Mapping[str, str], tmp_path: Path) -> None:
    settings = {**kafka_settings, "PENSTOCK_STORE_FOLDER": str(tmp_path / "work")}
    check_run(Commands(EXAMPLE, settings), tmp_path / "out.html")


@pytest.mark.kafka
def test_on_a_cluster(kafka_settings: Mapping[str, str], master: str, tmp_path: Path) -> None:
    """Topics of its own names would be shared with the run before: the broker forgets them first."""
    settings = {
        **kafka_settings,
        "PENSTOCK_STORE_FOLDER": str(tmp_path / "work"),
        "PENSTOCK_SPARK_MASTER": master,
        "PENSTOCK_EXECUTORS_MAX": "3",
        "PENSTOCK_PROFILE": "cluster",
    }
    commands = Commands(EXAMPLE, settings)
    for topic in ("sentences", "sentences.dead", "words", "words.dead", "counts"):
        commands.run("topic", "delete", topic, "--yes", "-p", str(EXAMPLE))
    check_run(commands, tmp_path / "out.html")
