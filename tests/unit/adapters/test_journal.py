"""The journal on a folder: what is written comes back, whatever the numbers; torn lines are normal."""

from __future__ import annotations

import errno
import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.files.codec import decode, encode
from penstock.adapters.files.journal import JOURNAL, UNREADABLE, FileJournal, FileRuns, read_entries
from penstock.model.decisions import Decision, Evidence, JobProposal, ScaleExecutors, ScaleThreads, StageNeed
from penstock.model.errors import MissingError, SpecError
from penstock.model.ids import TaskId
from penstock.model.observations import (
    BatchSample,
    ContainerSample,
    CostMoments,
    InstanceColumns,
    InstanceSample,
    ProcessSample,
    StageSample,
)
from penstock.model.status import JobStatus, RunEvent, RunHeader, RunStatus

ANY_FLOAT = st.floats(allow_nan=True, allow_infinity=True)
TEXT = st.text(max_size=12)
NAMES = st.sampled_from(["split", "count", "a.b", "größe"])
COUNTS = st.integers(-(2**40), 2**40)


def entries() -> st.SearchStrategy[Any]:
    moments = st.builds(CostMoments, *[ANY_FLOAT] * 7)
    instances = st.lists(st.builds(InstanceSample, ANY_FLOAT, ANY_FLOAT, ANY_FLOAT), max_size=3)
    stage = st.builds(
        StageSample,
        COUNTS,
        COUNTS,
        st.none() | COUNTS,
        ANY_FLOAT,
        ANY_FLOAT,
        ANY_FLOAT,
        gc_seconds=ANY_FLOAT,
        instances=instances.map(tuple) | instances.map(InstanceColumns.of),
        moments=st.none() | moments,
    )
    rates = st.dictionaries(NAMES, ANY_FLOAT, max_size=3)
    batch = st.builds(
        BatchSample,
        st.builds(TaskId, NAMES, COUNTS),
        COUNTS,
        COUNTS,
        COUNTS,
        ANY_FLOAT,
        ANY_FLOAT,
        ANY_FLOAT,
        COUNTS,
        rates,
        rates,
        ANY_FLOAT,
        ANY_FLOAT,
        st.lists(stage, max_size=2).map(tuple),
        state_rows=COUNTS,
        admitted=ANY_FLOAT,
    )
    need = st.builds(StageNeed, COUNTS, ANY_FLOAT, st.none() | COUNTS, ANY_FLOAT, ANY_FLOAT)
    evidence = st.builds(
        Evidence,
        *[ANY_FLOAT] * 5,
        rates,
        *[ANY_FLOAT] * 3,
        stages=st.lists(need, max_size=2).map(tuple),
        target_correction=ANY_FLOAT,
    )
    proposal = st.builds(
        JobProposal, NAMES, COUNTS, COUNTS, COUNTS, st.sampled_from(["none", "slots"]), TEXT, TEXT, evidence
    )
    action = st.builds(ScaleThreads, NAMES, COUNTS, TEXT) | st.builds(ScaleExecutors, COUNTS, TEXT)
    decision = st.builds(
        Decision,
        TEXT,
        ANY_FLOAT,
        TEXT,
        st.sampled_from(["hold", "scale"]),
        TEXT,
        st.lists(proposal, max_size=2).map(tuple),
        st.lists(action, max_size=3).map(tuple),
        st.lists(TEXT, max_size=2).map(tuple),
    )
    job = st.builds(
        JobStatus, NAMES, st.just("running"), COUNTS, COUNTS, *[ANY_FLOAT] * 7, COUNTS, COUNTS, COUNTS, TEXT
    )
    status = st.builds(
        RunStatus,
        ANY_FLOAT,
        st.just("running"),
        st.lists(job, max_size=2).map(tuple),
        *[COUNTS] * 5,
        decision=TEXT,
    )
    event = st.builds(RunEvent, ANY_FLOAT, TEXT, TEXT, TEXT, TEXT, TEXT)
    process = st.builds(ProcessSample, TEXT, COUNTS, COUNTS, ANY_FLOAT)
    container = st.builds(
        ContainerSample,
        TEXT,
        ANY_FLOAT,
        *[COUNTS] * 5,
        ANY_FLOAT,
        COUNTS,
        st.lists(process, max_size=2).map(tuple),
    )
    edges = st.lists(st.tuples(TEXT, TEXT, TEXT), max_size=2).map(tuple)
    header = st.builds(
        RunHeader, TEXT, TEXT, TEXT, TEXT, TEXT, ANY_FLOAT, st.lists(TEXT, max_size=2).map(tuple), edges
    )
    return st.one_of(batch, decision, status, event, container, header)


def same(left: Any, right: Any) -> bool:
    """Equal, where NaN equals NaN and instances may be rows or columns."""
    if isinstance(left, float):
        return isinstance(right, float) and (left == right or (math.isnan(left) and math.isnan(right)))
    if isinstance(left, InstanceColumns):
        left = tuple(left)
    if isinstance(left, tuple):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if hasattr(left, "__dataclass_fields__"):
        return type(left) is type(right) and all(
            same(getattr(left, name), getattr(right, name)) for name in left.__dataclass_fields__
        )
    return type(left) is type(right) and left == right


@given(entries())
@settings(max_examples=300, deadline=None)
def test_every_entry_survives_strict_json(entry: Any) -> None:
    text = json.dumps(encode(entry), allow_nan=False)
    assert same(entry, decode(type(entry), json.loads(text)))


def header(run: str = "r1", at: float = 100.0) -> RunHeader:
    return RunHeader(
        run, "wordcount", "pipeline.py", "embedded", "penstock", at, ("split",), (("", "a", "split"),)
    )


def event(at: float, text: str = "x") -> RunEvent:
    return RunEvent(at, "restarted", text, "split", cause="d-1")


def write(folder: Path, run: str, at: float, *more: Any) -> Path:
    journal = FileJournal(folder, run)
    for entry in (header(run, at), *more):
        journal.write(entry)
    journal.close()
    return journal.folder / JOURNAL


@given(st.lists(entries().filter(lambda e: not isinstance(e, RunHeader)), max_size=6))
@settings(max_examples=50, deadline=None)
def test_a_journal_gives_back_what_it_was_given_in_order(
    tmp_path_factory: pytest.TempPathFactory, given_entries: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("runs")
    write(folder, "r1", 1.0, *given_entries)
    read, end = FileRuns(folder).follow()
    assert same(tuple(read), (header("r1", 1.0), *given_entries))
    assert FileRuns(folder).follow("r1", end) == ([], end)
    history = FileRuns(folder).history()
    assert same(history.decisions, tuple(e for e in given_entries if isinstance(e, Decision)))
    assert same(history.statuses, tuple(e for e in given_entries if isinstance(e, RunStatus)))


def test_following_gives_each_entry_once_however_the_file_grows(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", 1.0, event(2.0))
    runs = FileRuns(tmp_path)
    first, at = runs.follow("r1")
    assert len(first) == 2
    with path.open("ab") as file:
        line = json.dumps({"entry": "event", **encode(event(3.0, "later"))}).encode()
        file.write(line[:20])
        file.flush()
        assert runs.follow("r1", at) == ([], at)
        file.write(line[20:] + b"\n")
    (entry,), _ = runs.follow("r1", at)
    assert entry == event(3.0, "later")


@given(cut=st.integers(2, 200))
@settings(max_examples=40, deadline=None)
def test_a_torn_last_line_costs_only_itself(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    folder = tmp_path_factory.mktemp("runs")
    path = write(folder, "r1", 1.0, event(2.0), event(3.0, "y" * 200))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert FileRuns(folder).history().events == (event(2.0),)
    FileJournal(folder, "r1").write(event(4.0))
    events = FileRuns(folder).history().events
    assert events[0] == event(2.0) and events[-1] == event(4.0)
    assert [e.kind for e in events[1:-1]] == [UNREADABLE]
    assert str(path) in events[1].text


def test_lines_of_other_versions_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    path = write(tmp_path, "r1", 1.0)
    line = {"entry": "event", **encode(event(5.0)), "from_the_future": [1]}
    odd = ({"entry": "omen", "at": 1}, {"at": 1}, [1], {"entry": "event", "at": 7.0})
    with path.open("a") as file:
        file.writelines(json.dumps(each) + "\n" for each in (line, *odd))
    events = FileRuns(tmp_path).history().events
    assert events[0] == event(5.0)
    assert [e.kind for e in events[1:]] == [UNREADABLE] * 4


def test_runs_come_newest_first_and_a_missing_one_names_those_there_are(tmp_path: Path) -> None:
    assert FileRuns(tmp_path / "none").runs() == []
    with pytest.raises(MissingError, match="no run under"):
        FileRuns(tmp_path).history()
    for run, at in (("r1", 10.0), ("r3", 30.0), ("r2", 20.0)):
        write(tmp_path, run, at)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / JOURNAL).write_text("{not json\n")
    runs = FileRuns(tmp_path)
    assert [h.run for h in runs.runs()] == ["r3", "r2", "r1"]
    assert runs.history().header.run == "r3"
    with pytest.raises(MissingError, match=r"no run 'r9' \(there are: r3, r2, r1\)"):
        runs.history("r9")


def test_a_run_id_cannot_leave_its_folder(tmp_path: Path) -> None:
    with pytest.raises(SpecError):
        FileJournal(tmp_path, "../elsewhere")
    assert list(tmp_path.iterdir()) == []


def test_many_threads_write_whole_lines(tmp_path: Path) -> None:
    journal = FileJournal(tmp_path, "r1")
    journal.write(header())

    def work(number: int) -> None:
        for i in range(50):
            journal.write(event(float(i), f"{number}" * 300))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    events = FileRuns(tmp_path).history().events
    assert len(events) == 200 and all(e.kind == "restarted" for e in events)


def test_a_full_disk_loses_entries_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The third entry is half written, the fourth not at all; then there is room again."""
    journal = FileJournal(tmp_path, "r1")
    events = [RunEvent(float(i), "changed", f"event {i}") for i in range(6)]
    real, room = os.write, [10**9]

    def write(file: int, data: bytes) -> int:
        if room[0] <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        done = real(file, bytes(data)[: room[0]])
        room[0] -= done
        return done

    monkeypatch.setattr(os, "write", write)
    for i, event in enumerate(events):
        room[0] = {2: 20, 3: 0}.get(i, 10**9)
        journal.write(event)
    journal.close()
    entries, _ = read_entries(tmp_path / "r1" / JOURNAL, 0)
    kinds = [(entry.kind, entry.text) for entry in entries if isinstance(entry, RunEvent)]
    assert [text for kind, text in kinds if kind == "changed"] == ["event 0", "event 1", "event 4", "event 5"]
    assert ("lost", "The disk took none of 2 entries of this journal; they are lost.") in kinds
    assert [kind for kind, _ in kinds].count("unreadable") == 1
