"""Damaged files of the log: found, named, and nothing else suffers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.adapters.log import EmbeddedLog
from penstock.adapters.log.upkeep import UpkeepSettings
from penstock.model.errors import CorruptionError, EnvironmentProblem
from penstock.model.ids import TopicPartition
from penstock.model.records import OffsetRange, Record

HURT = TopicPartition("t", 0)
SOUND = TopicPartition("t", 1)


@pytest.fixture
def log(tmp_path: Path) -> Iterator[EmbeddedLog]:
    log = EmbeddedLog(tmp_path / "log", durable=False, upkeep=UpkeepSettings(grace_seconds=0.0))
    log.create("t", 2)
    log.append("t", [Record(None, b"one", n) for n in range(5)], 0)
    log.append("t", [Record(None, b"two", n) for n in range(5)], 0)
    log.append("t", [Record(None, b"three", n) for n in range(5)], 1)
    yield log
    log.close()


def file_of(log: EmbeddedLog, place: TopicPartition, offset: int) -> Path:
    return log.folder / log.locate([OffsetRange(place, offset, offset + 1)])[0][0].path


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def lose(path: Path) -> None:
    path.unlink()


@pytest.mark.parametrize(
    ("hurt", "kind", "words"),
    [(tear, "torn", "ends 7 bytes early"), (flip, "corrupt", "checksum"), (lose, "missing", "is missing")],
)
def test_damage_is_named_and_does_not_spread(log: EmbeddedLog, hurt: object, kind: str, words: str) -> None:
    path = file_of(log, HURT, 5)
    hurt(path)  # type: ignore[operator]
    with pytest.raises(CorruptionError, match=words) as told:
        log.read(HURT, 5, 1)
    for part in (path.name, "topic t, partition 0, offsets 5 to 9"):
        assert part in str(told.value)
    assert len(log.read(HURT, 0, 5)) == 5
    assert len(log.read(SOUND, 0, 9)) == 5
    log.append("t", [Record(None, b"new", 1)], 0)
    assert [r.record.value for r in log.read(HURT, 10, 9)] == [b"new"]
    [finding] = log.verify()
    assert (finding.kind, finding.lost) == (kind, OffsetRange(HURT, 5, 10))
    assert path.name in finding.path
    assert words in finding.sentence


def test_several_findings_do_not_hide_each_other(log: EmbeddedLog) -> None:
    tear(file_of(log, HURT, 0))
    lose(file_of(log, HURT, 5))
    flip(file_of(log, SOUND, 0))
    assert [f.kind for f in log.verify()] == ["torn", "missing", "corrupt"]
    assert [f.kind for f in log.verify(contents=False)] == ["torn", "missing"]
    assert [f.kind for f in log.verify("t")] == ["torn", "missing", "corrupt"]


def test_a_gap_in_the_index_is_named(log: EmbeddedLog) -> None:
    with sqlite3.connect(log.index.path) as db:
        db.execute("DELETE FROM chunk WHERE partition = 0 AND base_offset = 0")
    db.close()
    [finding] = log.verify()
    assert (finding.kind, finding.lost) == ("gap", OffsetRange(HURT, 0, 5))
    with pytest.raises(CorruptionError, match="offset 0"):
        log.read(HURT, 0, 1)
    with pytest.raises(CorruptionError, match="offset 0"):
        log.locate([OffsetRange(HURT, 0, 3)])
    assert len(log.read(HURT, 5, 9)) == 5


def test_a_damaged_chunk_is_not_merged(log: EmbeddedLog) -> None:
    for _ in range(30):
        log.append("t", [Record(None, b"x", 1)], 0)
    path = file_of(log, HURT, 20)
    flip(path)
    problems = [p for _ in range(8) for p in log.maintain().problems]
    assert len(problems) == 1
    assert path.name in problems[0]
    assert file_of(log, HURT, 20) == path
    assert [f.lost for f in log.verify()] == [OffsetRange(HURT, 20, 21)]
    assert [r.offset for r in log.read(HURT, 0, 20)] == list(range(20))
    assert [r.offset for r in log.read(HURT, 21, 99)] == list(range(21, 40))
    assert file_of(log, HURT, 22) == file_of(log, HURT, 29)


def test_a_damaged_index_is_a_sentence(log: EmbeddedLog, tmp_path: Path) -> None:
    log.close()
    (tmp_path / "log" / "index.sqlite").write_bytes(b"this is no database" * 100)
    with pytest.raises(CorruptionError, match=r"index.*is damaged"):
        EmbeddedLog(tmp_path / "log")


def test_a_log_of_another_format_is_a_sentence(log: EmbeddedLog, tmp_path: Path) -> None:
    with sqlite3.connect(log.index.path) as db:
        db.execute("UPDATE meta SET value = 99 WHERE name = 'version'")
    db.close()
    log.close()
    with pytest.raises(EnvironmentProblem, match="format 99"):
        EmbeddedLog(tmp_path / "log")
