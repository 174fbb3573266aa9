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
from penstock.interfaces.report.verdict import changing_decisions, describe_run, last_running, thread_path
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
    assert "At the end every job kept up" in page


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
    last = last_running(history)
    assert last is not None
    jobs = (replace(last.jobs[0], **last_job), *last.jobs[1:])  # type: ignore[arg-type]
    return " ".join(describe_run(replace(history, statuses=(*history.statuses, replace(last, jobs=jobs)))))


def test_threads_are_told_once_in_a_row(history: RunHistory) -> None:
    assert thread_path(history, "split") == [1, 11, 10, 5] and thread_path(history, "nobody") == []


def test_the_last_status_is_the_last_one_that_ran(history: RunHistory) -> None:
    last = last_running(history)
    assert last is not None and last.phase == "running" and last is history.statuses[-2]
    assert last_running(empty(history)) is None


def test_who_falls_behind_is_named_with_share_and_lag(history: RunHistory) -> None:
    text = told(history, rate_in=300.0, rate_offered=720.0, lag_seconds=95.0)
    assert "At the end split took in 42% of what was offered and lagged 95.0 s." in text
    assert "took in none of what was offered and lagged ∞" in told(
        history, rate_in=math.nan, lag_seconds=math.inf
    )


@pytest.mark.parametrize(
    "fine",
    [
        {"rate_in": 700.0, "rate_offered": 720.0, "lag_seconds": 95.0},
        {"rate_in": 300.0, "rate_offered": 720.0, "lag_seconds": 1.0},
        {"rate_in": math.nan, "lag_seconds": math.nan},
        {"rate_in": 0.0, "rate_offered": 0.0, "lag_seconds": 0.0},
    ],
)
def test_who_keeps_up_nearly_or_is_not_known_is_not_accused(
    history: RunHistory, fine: dict[str, float]
) -> None:
    assert "every job kept up" in told(history, **fine)


def test_trouble_is_told(history: RunHistory) -> None:
    text = told(history, state="failed", restarts=2, dead_letters=1_500)
    assert "Failed: split; " in text
    assert "tasks were restarted 2 times" in text and "1,500 records did not parse" in text


def test_the_last_alert_is_told(history: RunHistory) -> None:
    alert = Decision("d-9", history.header.started_at, "penstock", "alert", "Nothing helps.", ())
    alerted = replace(history, decisions=(*history.decisions, alert))
    assert "Last alert: Nothing helps." in " ".join(describe_run(alerted))
    assert changing_decisions(alerted.decisions)[-1] is alert


def test_a_run_that_never_changed_says_so(history: RunHistory) -> None:
    still = replace(history, statuses=history.statuses[:20], decisions=())
    assert describe_run(still)[0] == "No job changed its size."
