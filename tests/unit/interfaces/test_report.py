"""The report: one valid page that opens offline, with plots, the verdict in words, and every decision's formula."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from penstock.interfaces.report.page import render_report, write_report
from penstock.interfaces.report.verdict import changing_decisions, describe_run, last_status, thread_path
from penstock.model.decisions import Decision
from penstock.model.errors import EnvironmentProblem
from penstock.model.status import RunEvent, RunHistory

VOID = {"meta", "br", "hr", "img", "link", "input"}


class Outline(HTMLParser):
    """Which tags are open, which never closed, and what points outside."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.outside: list[str] = []
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            local = (value or "").startswith("#") or name.startswith("xmlns")
            if name in ("src", "href", "xlink:href", "action") and not local:
                self.outside.append(f"{tag} {name}={value}")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


def outline(page: str) -> Outline:
    read = Outline()
    read.feed(page)
    return read


def empty(history: RunHistory) -> RunHistory:
    return RunHistory(history.header)


def torn(history: RunHistory) -> RunHistory:
    """Numbers that are not there, everywhere they may not be."""
    jobs = tuple(
        replace(
            j,
            rate_in=math.nan,
            capacity=math.inf,
            backlog=math.nan,
            lag_seconds=math.inf,
            batch_seconds=math.nan,
        )
        for j in history.statuses[50].jobs
    )
    decision = replace(history.decisions[0], at=math.nan)
    event = RunEvent(math.nan, "failed", "x", details="y")
    return RunHistory(history.header, (replace(history.statuses[50], jobs=jobs),), (decision,), (event,))


@pytest.mark.parametrize("change", [lambda h: h, empty, torn], ids=["whole", "empty", "torn"])
def test_the_page_is_valid_and_opens_offline(history: RunHistory, change: object) -> None:
    page = render_report(change(history))  # type: ignore[operator]
    read = outline(page)
    assert page.startswith("<!doctype html>") and read.open == [] and read.wrong == []
    assert read.outside == [] and not {"script", "link", "iframe", "img"} & set(read.tags)
    addresses = set(re.findall(r"(?:https?:)?//[\w.]+|@import|url\(\s*['\"]?(?!#)[^)]*", page))
    assert addresses <= {"http://www.w3.org"}
    assert not re.search(
        r"(?<![\w-])(?:nan|inf)(?![\w-])", re.sub(r"<style>.*?</style>", "", page, flags=re.S)
    )


def test_every_plot_is_wellformed_and_has_its_title(history: RunHistory) -> None:
    page = render_report(history)
    drawn = re.findall(r"<svg.*?</svg>", page, flags=re.S)
    titles = [ElementTree.fromstring(text).findtext("title") or "" for text in drawn]
    assert len(drawn) == 1 + 2 * 4 + 2
    assert titles[0] == "The pipeline" and sum(t.startswith("Rates, records per second") for t in titles) == 2
    assert any(t.startswith("Memory, GB") for t in titles) and any(t.startswith("Slots") for t in titles)


def test_the_verdict_comes_first(history: RunHistory) -> None:
    page = render_report(history)
    heading = re.search(r"<h1>(.*?)</h1>", page)
    assert heading is not None
    assert heading.group(1) == (
        "split went 1 → 11 → 10 → 5 threads and count went 1 → 22 → 20 → 10 threads, in 3 decisions."
    )
    assert "No job was later than its slo_lag; the most was" in page


def test_decisions_are_told_with_formula_and_what_was_passed_over(history: RunHistory) -> None:
    page = render_report(history)
    assert page.count("<article>") == len(history.decisions)
    assert "6 decisions to leave things as they are" in page
    assert "need = the least p with D(p) &lt;= L" in page and "rung 1: no imbalance was measured" in page
    assert "10 when the backlog is gone" in page


def test_what_was_done_is_shown_where_the_formula_asked_for_more(history: RunHistory) -> None:
    """The slots were short: eleven were needed, seven were given."""
    changed = next(d for d in history.decisions if d.actions)
    short = replace(changed, actions=(replace(changed.actions[0], threads=7),))  # type: ignore[call-arg]
    page = render_report(replace(history, decisions=(short,)))
    assert "<td class=size>1 → 7</td>" in page and "<td class=size>1 → 11</td>" not in page


def test_events_are_told_whole_and_as_text(history: RunHistory) -> None:
    page = render_report(history)
    assert "ValueError: &lt;bad&gt;" in page and "<bad>" not in page


def test_names_are_text_whatever_they_hold(history: RunHistory) -> None:
    header = replace(history.header, pipeline="<script>alert(1)</script>", profile='"><b>')
    read = outline(render_report(replace(history, header=header)))
    assert "script" not in read.tags and read.wrong == [] and read.open == []


def test_an_empty_run_says_so(history: RunHistory) -> None:
    page = render_report(empty(history))
    assert "The run ended before anything was measured." in page and "Nothing was measured." in page
    assert "No decision changed anything." in page


def test_a_long_run_stays_a_page(history: RunHistory) -> None:
    many = tuple(
        replace(history.decisions[0], id=f"d-{i}", at=history.header.started_at + i) for i in range(500)
    )
    page = render_report(replace(history, decisions=many))
    assert (
        "500 decisions to leave things as they are (the newest 200)" in page
        and page.count("<article>") == 200
    )


def test_a_report_is_written_whole_or_not_at_all(history: RunHistory, tmp_path: Path) -> None:
    write_report(history, tmp_path / "r.html")
    assert [p.name for p in tmp_path.iterdir()] == ["r.html"]
    with pytest.raises(EnvironmentProblem, match="could not be written"):
        write_report(history, tmp_path / "nowhere" / "r.html")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(EnvironmentProblem, match="name another file"):
        write_report(history, tmp_path / "folder.html")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["folder.html", "r.html"]


# The verdict


def told(history: RunHistory, **last_job: object) -> str:
    end = history.statuses[-1]
    jobs = (replace(end.jobs[0], **last_job), *end.jobs[1:])  # type: ignore[arg-type]
    return " ".join(
        describe_run(replace(history, statuses=(*history.statuses[:-1], replace(end, jobs=jobs))))
    )


def lagging(history: RunHistory, lags: dict[int, float], job: int = 0) -> RunHistory:
    """The same run with these lags in these seconds."""
    changed = list(history.statuses)
    for second, lag in lags.items():
        held = list(changed[second].jobs)
        held[job] = replace(held[job], lag_seconds=lag)
        changed[second] = replace(changed[second], jobs=tuple(held))
    return replace(history, statuses=tuple(changed))


def test_threads_are_told_once_in_a_row(history: RunHistory) -> None:
    assert thread_path(history, "split") == [1, 11, 10, 5] and thread_path(history, "nobody") == []


def test_the_last_status_is_after_the_drain_with_the_rates_from_before_it(history: RunHistory) -> None:
    quiet = tuple(replace(j, rate_in=0.0, rate_offered=0.0, backlog=7.0) for j in history.statuses[-1].jobs)
    ended = replace(history.statuses[-1], phase="ended", jobs=quiet)
    last = last_status(replace(history, statuses=(*history.statuses, ended)))
    assert last is not None and last.phase == "ended" and last.jobs[0].backlog == 7.0
    assert last.jobs[0].rate_in == history.statuses[-2].jobs[0].rate_in > 0
    assert last_status(empty(history)) is None


def test_who_was_later_than_accepted_is_the_headline_with_how_long_and_how_late(history: RunHistory) -> None:
    late = lagging(history, {30: 301.0, 31: 360.0, 32: 310.0, 33: 299.0})
    text = describe_run(late)
    assert text[0] == "split was later than its slo_lag of 5 min for 3.0 s, at most 6 min behind."
    assert "No job was later" not in " ".join(text) and "slo_lag of 5 min for 3.0 s" in render_report(late)
    both = lagging(lagging(late, {40: 420.0}, job=1), {len(history.statuses) - 1: 301.0})
    assert describe_run(both)[0] == (
        "split was later than its slo_lag of 5 min for 3.0 s, at most 6 min behind, and still at the end "
        "and count was later than its slo_lag of 5 min for 1.0 s, at most 7 min behind."
    )


def test_a_backlog_that_only_the_last_status_shows_is_told(history: RunHistory) -> None:
    text = told(history, lag_seconds=360.0)
    assert text.startswith("split was later than its slo_lag of 5 min at the end, at most 6 min behind.")
    assert "at the end" not in told(history, lag_seconds=math.nan), "a lag that is not known is none"


@pytest.mark.parametrize("lag", [math.nan, 0.0, 300.0])
def test_who_is_not_later_or_not_known_is_not_accused(history: RunHistory, lag: float) -> None:
    assert "No job was later than its slo_lag" in told(history, lag_seconds=lag)


def test_a_failed_job_is_the_headline_and_is_not_praised(history: RunHistory) -> None:
    text = told(history, state="failed")
    assert text.startswith("split failed. ") and "No other job was later than its slo_lag" in text
    failed = replace(history.statuses[-1], phase="failed")
    assert describe_run(replace(history, statuses=(*history.statuses, failed)))[0] == "The run failed."


def test_trouble_is_told(history: RunHistory) -> None:
    text = told(history, state="failed", restarts=2, dead_letters=1_500)
    assert text.startswith("split failed.")
    assert "Tasks were restarted 2 times" in text and "1,500 records did not parse" in text


def test_the_last_alert_is_told(history: RunHistory) -> None:
    alert = Decision("d-9", history.header.started_at, "penstock", "alert", "Nothing helps.", ())
    alerted = replace(history, decisions=(*history.decisions, alert))
    assert "Last alert: Nothing helps." in " ".join(describe_run(alerted))
    assert changing_decisions(alerted.decisions)[-1] is alert


def test_a_run_that_never_changed_says_so(history: RunHistory) -> None:
    still = replace(history, statuses=history.statuses[:20], decisions=())
    assert describe_run(still)[0] == "No job changed its size."
