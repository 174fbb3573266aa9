"""A journal has a bound: what is old is thinned, what changed something stays, and readers notice nothing."""

from __future__ import annotations

import errno
import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.adapters.files.journal import DROPPED, JOURNAL, UNREADABLE, FileJournal, FileRuns
from penstock.adapters.files.thinning import read_marker
from penstock.model.decisions import Decision, ScaleThreads
from penstock.model.observations import ContainerSample
from penstock.model.status import RunEvent, RunHeader, RunStatus
from penstock.ports.journal import Entry

BOUND = 16_000
HEADER = RunHeader("r1", "wordcount", "pipeline.py", "embedded", "penstock", 0.0, ("split",))


def status(at: float) -> RunStatus:
    return RunStatus(at, "running", (), 8, 1, 1, 2, 3)


def container(at: float) -> ContainerSample:
    return ContainerSample("c", at, 8, 1, 10, 20, 30, 0.5, 2)


def quiet(at: float) -> Decision:
    return Decision(f"q{at:.0f}", at, "penstock", "hold", "nothing changes", ())


def change(at: float) -> Decision:
    id_ = f"d{at:.0f}"
    return Decision(id_, at, "penstock", "scale", "more", (), (ScaleThreads("split", 2, id_),))


def alert(at: float) -> Decision:
    return Decision(f"a{at:.0f}", at, "penstock", "alert", "no size is enough", ())


def event(at: float) -> RunEvent:
    return RunEvent(at, "changed", f"event {at:.0f}", "split")


def hours(seconds: int) -> list[Entry]:
    """A status and a sample each second, a quiet decision every ten, something that tells every hundred."""
    entries: list[Entry] = []
    for at in range(seconds):
        entries += [status(float(at)), container(float(at))]
        if at % 10 == 0:
            entries.append(quiet(float(at)))
        if at % 100 == 0:
            entries += [change(float(at)), event(float(at)), alert(float(at))]
    return entries


def tells(entry: Entry) -> bool:
    return isinstance(entry, RunEvent) or (
        isinstance(entry, Decision) and bool(entry.actions or entry.verdict == "alert")
    )


def write(folder: Path, entries: list[Entry], bound: int = BOUND) -> FileJournal:
    journal = FileJournal(folder, "r1", bound)
    for entry in (HEADER, *entries):
        journal.write(entry)
    return journal


def test_it_stays_within_its_bound_and_keeps_what_changed_something(tmp_path: Path) -> None:
    sizes: list[int] = []
    entries = hours(700)
    journal = FileJournal(tmp_path, "r1", BOUND)
    for entry in (HEADER, *entries):
        journal.write(entry)
        sizes.append((journal.folder / JOURNAL).stat().st_size)
    assert max(sizes) <= BOUND < sum(b - a for a, b in pairwise(sizes) if b > a)
    runs = FileRuns(tmp_path)
    read, _ = runs.follow()
    assert read[0] == HEADER and runs.runs() == [HEADER]
    assert [entry for entry in read if tells(entry)] == [entry for entry in entries if tells(entry)]
    assert read[-20:] == entries[-20:]


def test_older_statuses_are_spread_evenly_over_the_run(tmp_path: Path) -> None:
    write(tmp_path, [status(float(at)) for at in range(2_000)]).close()
    times = [s.at for s in FileRuns(tmp_path).history().statuses]
    assert times == sorted(set(times)) and times[0] == 0.0 and times[-1] == 1_999.0
    older = [at for at in times if at < 1_500.0]
    gaps = [b - a for a, b in pairwise(older)]
    assert len(older) >= 6 and max(gaps) <= 4 * sorted(gaps)[len(gaps) // 2]


def test_the_bound_alone_says_how_much_is_kept(tmp_path: Path) -> None:
    sizes = []
    for bound in (BOUND, 2 * BOUND, 1 << 30):
        write(tmp_path / str(bound), hours(900), bound).close()
        sizes.append((tmp_path / str(bound) / "r1" / JOURNAL).stat().st_size)
    assert sizes[0] <= BOUND < sizes[1] <= 2 * BOUND < sizes[2]


@given(stops=st.lists(st.integers(1, 400), min_size=1, max_size=12))
@settings(max_examples=25, deadline=None)
def test_a_follower_gets_each_entry_once_in_order_across_thinnings(
    tmp_path_factory: pytest.TempPathFactory, stops: list[int]
) -> None:
    """However seldom it looks, nothing that tells is missed, and nothing comes twice."""
    folder = tmp_path_factory.mktemp("runs")
    journal, runs, entries = FileJournal(folder, "r1", BOUND), FileRuns(folder), [HEADER, *hours(400)]
    seen: list[Entry] = []
    position, written = 0, 0
    for stop in [*stops, len(entries)]:
        for entry in entries[written : written + stop]:
            journal.write(entry)
        written += stop
        more, position = runs.follow("r1", position)
        assert runs.follow("r1", position) == ([], position)
        seen += more
    order = [entries.index(entry) for entry in seen]
    assert order == sorted(set(order))
    assert [e for e in seen if tells(e)] == [e for e in entries if tells(e)]


def test_what_tells_is_bounded_too_and_says_how_much_went(tmp_path: Path) -> None:
    events = [event(float(at)) for at in range(3_000)]
    journal = write(tmp_path, list(events))
    assert (journal.folder / JOURNAL).stat().st_size <= BOUND
    told = FileRuns(tmp_path).history().events
    dropped = len(events) - (len(told) - 1)
    assert told[0].kind == DROPPED and f"oldest {dropped} events" in told[0].text
    assert told[1:] == tuple(events[dropped:]) and told[0].at == events[dropped - 1].at


def test_a_thinning_that_died_half_way_leaves_the_journal_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path, hours(50)).folder / JOURNAL
    before = path.read_bytes()
    half = path.with_name(JOURNAL + ".next")
    half.write_bytes(before[:100])
    assert FileRuns(tmp_path).history().header == HEADER
    FileJournal(tmp_path, "r1", BOUND).close()
    assert not half.exists() and path.read_bytes() == before


def test_a_disk_without_room_for_a_thinning_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    entries = hours(300)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse)
        journal = write(tmp_path, entries)
    assert FileRuns(tmp_path).follow()[0] == [HEADER, *entries]
    assert [p.name for p in journal.folder.iterdir()] == [JOURNAL]
    for entry in hours(100):
        journal.write(entry)
    assert (journal.folder / JOURNAL).stat().st_size <= BOUND


def test_a_journal_that_is_opened_again_is_thinned_on(tmp_path: Path) -> None:
    for _ in range(4):
        write(tmp_path, hours(300)).close()
    path = tmp_path / "r1" / JOURNAL
    assert path.stat().st_size <= BOUND
    first, second = path.read_bytes().splitlines(keepends=True)[:2]
    marker = read_marker(second)
    assert json.loads(first)["entry"] == "run" and marker is not None and marker.position > BOUND
    assert FileRuns(tmp_path).history().events[-1] == event(200.0)


def test_a_torn_line_in_the_older_part_is_left_out(tmp_path: Path) -> None:
    journal = write(tmp_path, [event(1.0)])
    journal.close()
    path = journal.folder / JOURNAL
    path.write_bytes(path.read_bytes()[:-9])
    write(tmp_path, hours(600)).close()
    read: list[Any] = FileRuns(tmp_path).follow()[0]
    assert all(e.kind == "changed" for e in read if isinstance(e, RunEvent))
    assert path.stat().st_size <= BOUND


@pytest.mark.parametrize("byte", [b"\xff", b"\n", b"\r", b'"', b"9"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.999])
def test_a_byte_that_changed_in_the_older_part_costs_its_line_only(
    tmp_path: Path, byte: bytes, share: float
) -> None:
    write(tmp_path, hours(600)).close()
    path = tmp_path / "r1" / JOURNAL
    data = path.read_bytes()
    first, second = data.splitlines(keepends=True)[:2]
    marker = read_marker(second)
    assert marker is not None
    whole = len(FileRuns(tmp_path).follow()[0])
    at = len(first) + len(second) + int(share * marker.head_bytes) + 3
    path.write_bytes(data[:at] + byte + data[at + 1 :])
    read, _ = FileRuns(tmp_path).follow()
    assert whole - 1 <= len(read) <= whole + 1
    journal = FileJournal(tmp_path, "r1", BOUND)
    for entry in hours(600):
        journal.write(entry)  # thinned on and on
    journal.close()
    assert journal.lost == 0 and path.stat().st_size <= BOUND
    assert FileRuns(tmp_path).history().events[-1] == event(500.0)


def test_a_marker_that_cannot_be_read_leaves_a_journal_of_plain_lines(tmp_path: Path) -> None:
    write(tmp_path, hours(600)).close()
    path = tmp_path / "r1" / JOURNAL
    path.write_bytes(path.read_bytes().replace(b'"head_bytes":', b'"head_bytes"\xff', 1))
    history = FileRuns(tmp_path).history()
    assert history.events[-1] == event(500.0) and any(e.kind == UNREADABLE for e in history.events)
