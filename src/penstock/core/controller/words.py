"""A decision in words and as a formula with its values in it, so that a person can compute it again by hand.

Reads a round's columns; decides nothing.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from penstock.core.sizing.batch_time import StageCost, batch_seconds, carried_rate
from penstock.core.sizing.columns import LIMITS
from penstock.core.sizing.pacing import CODES
from penstock.model.decisions import Evidence, JobProposal, Limit, StageNeed
from penstock.model.units import format_rate

if TYPE_CHECKING:
    from penstock.core.controller.rounds import Round

_LIMIT_TEXT: dict[Limit, str] = {
    "overhead-bound": "overhead leaves too little of L: give it a longer interval, or fewer and larger tasks",
    "state partitions": "its state partitions are the ceiling: no thread beyond them helps",
    "hot unit": "one piece of its work that can't be split takes too long",
    "infeasible interval": "its lag objective is not above interval and overhead: give it a shorter interval",
    "max_threads": "max_threads is the ceiling",
    "min_threads": "min_threads is the floor",
    "partitions": "it keeps order, so the partitions of its topics are the ceiling",
    "slots": "the container has no more slots",
}


_SETTLING = ("warm-up", "waits", "activation")
"""Rounds whose numbers are not settled: advice would be about the start, not about the job."""


def explain_job(held: Round, row: int) -> JobProposal:
    """One job's proposal with every number behind it."""
    limit = LIMITS[int(held.limit[row])]
    threads, wanted = int(held.threads[row]), int(held.wanted[row])
    return JobProposal(
        job=held.layout.names[row],
        threads=threads,
        proposed=wanted,
        steady=int(held.steady[row]),
        limit=limit,
        reason=_reason(held, row, limit),
        formula=_formula(held, row),
        evidence=_evidence(held, row),
    )


def _evidence(held: Round, row: int) -> Evidence:
    cost, seconds = held.cost.job(row), float(held.seconds[row])
    wanted = max(1, int(held.wanted[row]))
    records = _records(held, row, held.demand.full)
    useful = [s.useful_seconds(records, wanted) for s in cost.stages]
    per_record = math.fsum(s.record_seconds for s in cost.stages)
    known = math.isfinite(held.known_at[row])
    edges = held.layout.edges
    return Evidence(
        target_rate=float(held.demand.target[row]),
        backlog_records=float(held.backlog[row]),
        backlog_rate=float(held.demand.backlog_rate[row]),
        true_rate=1.0 / per_record if per_record > 0 else math.nan,
        observed_rate=float(held.observed[row]),
        selectivity={edges[e][1]: float(held.selectivity[e]) for _, e in held.layout.writes[row]},
        overhead_seconds=cost.overhead_seconds if known else math.nan,
        objective_seconds=seconds,
        predicted_batch_seconds=batch_seconds(cost, records, wanted) if known else math.nan,
        stages=tuple(
            StageNeed(
                i, u, s.ceiling, _unit_seconds(s, records), s.task_seconds, s.record_seconds, s.unit_share
            )
            for i, (s, u) in enumerate(zip(cost.stages, useful, strict=True))
        ),
        target_correction=float(held.correction[row]),
        window_age_seconds=max(0.0, held.now - float(held.known_at[row])) if known else math.nan,
    )


def _unit_seconds(stage: StageCost, records: float) -> float:
    if stage.unit_share <= 0:
        return 0.0
    return stage.unit_share * stage.record_seconds * records + stage.task_seconds


def _records(held: Round, row: int, demand: object) -> float:
    rate = float(demand[row])  # pyright: ignore[reportIndexIssue, reportUnknownArgumentType]
    backlog = float(held.demand.full[row]) - float(held.demand.target[row])
    steady = float(held.demand.target[row]) * float(held.correction[row])
    rate = steady + (backlog if demand is held.demand.full else 0.0)
    return rate * float(held.seconds[row]) if math.isfinite(rate) else math.nan


def _reason(held: Round, row: int, limit: Limit) -> str:
    threads, to, wanted = int(held.threads[row]), int(held.to[row]), int(held.wanted[row])
    code = CODES[int(held.code[row])]
    if code == "set aside":
        return f"Set aside: {held.why_aside.get(row, 'nothing is known of it yet')}; it keeps its {threads}."
    if code == "unscalable":
        return f"It is declared scalable = false; it keeps its {threads}."
    rate = float(held.demand.full[row])
    carries = carried_rate(held.cost.job(row), float(held.seconds[row]), threads)
    asked = f"{format_rate(rate)} need {wanted}, {threads} {_verb(threads)} {format_rate(carries)}"
    text = {
        "fits": f"It fits: {asked}",
        "up": f"{threads} -> {to}: {asked}",
        "down": f"{threads} -> {to}: {asked}",
        "give back": f"{threads} -> {to}: the backlog is gone, and what was lent for it comes back",
        "warm-up": f"Its rates settle after the start or a change; {asked}",
        "waits": f"It waits for a neighbour whose rates are not settled, so that they change together; {asked}",
        "small": f"A change that small is noise: {asked}",
        "lent": f"A backlog is still being worked off: {asked}",
        "room": f"It keeps some room: {asked}, above its scale_in_share",
        "changing": f"Its source's rate is changing right now; {asked}",
        "activation": f"Not enough proposals yet to combine; {asked}",
        "barred": f"{wanted} made it worse before, and that many are barred; {asked}",
        "roll back": f"{threads} -> {to}: {threads} {_verb(threads)} less than {to} did, at the same demand",
        "alert": f"More threads brought nothing several times in a row, so it stops trying: {asked}",
        "slots": f"It gets {to} of the {wanted} it needs: {asked}",
    }[code]
    if limit in _LIMIT_TEXT and code not in ("roll back", "give back", *_SETTLING):
        text += f"; {_LIMIT_TEXT[limit]}"
    extra = wanted - int(held.steady[row])
    if extra > 0 and code in ("up", "lent", "fits", "slots", "down"):
        text += f"; {extra} of them only until the backlog is gone"
    return f"{text}."


def _formula(held: Round, row: int) -> str:
    """The formula with its values; six digits, so that it can be computed again."""
    if not math.isfinite(held.known_at[row]) or not math.isfinite(held.demand.target[row]):
        return f"nothing to compute with: {held.why_aside.get(row, 'no rates yet')}"
    lines = [_demand_text(held, row)]
    if held.terms.batch_time:
        lines.append(_objective_text(held, row))
        lines += [_batch_text(held, row, int(held.steady[row]), held.demand.target, "without a backlog")]
        if held.demand.full[row] > held.demand.target[row]:
            lines += [_backlog_text(held, row)]
            lines += [
                _batch_text(held, row, int(held.wanted[row]), held.demand.full, "with the backlog's share")
            ]
    else:
        lines.append(_ds2_text(held, row))
    limit = LIMITS[int(held.limit[row])]
    if limit != "none" and CODES[int(held.code[row])] not in _SETTLING:
        lines.append(f"limit: {limit}, {_LIMIT_TEXT.get(limit, 'it is passed over')}")
    return "\n".join(lines)


def _demand_text(held: Round, row: int) -> str:
    layout, parts = held.layout, list[str]()
    target = float(held.demand.target[row])
    if held.demand.guessed[row]:
        parts.append("appended to its inputs, since what its upstream makes of a record is not known yet")
    else:
        for topic in layout.reads[row]:
            if not layout.written_by[topic]:
                parts.append(f"produced in {layout.topics[topic]}")
            for e in layout.written_by[topic]:
                writer, name = layout.edges[e]
                rate = min(float(held.demand.target[writer]), float(held.handed_on[writer]))
                parts.append(
                    f"{held.selectivity[e]:.6g} {name} per record x {rate:.6g}/s of {layout.names[writer]}"
                )
    text = f"demand = {target:.6g}/s ({' + '.join(parts)})"
    correction = float(held.correction[row])
    return text if correction == 1.0 else f"{text}, corrected x {correction:.6g} (target ratio)"


def _objective_text(held: Round, row: int) -> str:
    options = held.layout.jobs[row].options
    interval, slo = options.interval_seconds, options.slo_lag_seconds
    seconds = float(held.seconds[row])
    if slo <= interval + float(held.cost.overhead[row]):
        return f"L = interval = {seconds:.6g} s, since slo_lag {slo:.6g} s is not above interval {interval:.6g} s + h"
    return f"L = min({interval:.6g} s, {slo:.6g} s - {interval:.6g} s) = {seconds:.6g} s"


def _batch_text(held: Round, row: int, threads: int, demand: object, label: str) -> str:
    cost, seconds = held.cost.job(row), float(held.seconds[row])
    records = _records(held, row, demand)
    threads = max(1, threads)
    parts = [f"{cost.overhead_seconds:.6g} s"]
    for stage in cost.stages:
        tasks = threads if stage.ceiling is None else stage.ceiling
        useful = f"{records:.6g} x {stage.record_seconds:.6g} s"
        if stage.task_seconds > 0:
            useful = f"({useful} + {tasks} x {stage.task_seconds:.6g} s)"
        abreast = threads if stage.ceiling is None else stage.ceiling
        unit = _unit_seconds(stage, records)
        parts.append(f"max({useful} / {abreast}, {unit:.6g} s)" if unit > 0 else f"{useful} / {abreast}")
    took = batch_seconds(cost, records, threads)
    sign = "<=" if took <= seconds * (1 + 1e-9) else ">"
    text = f"{label}: D({threads}) = {' + '.join(parts)} = {took:.6g} s {sign} {seconds:.6g} s"
    if threads > 1:
        less = batch_seconds(cost, records, threads - 1)
        sign = "<=" if less <= seconds * (1 + 1e-9) else ">"
        text += f", D({threads - 1}) = {less:.6g} s {sign} {seconds:.6g} s"
    return f"{text} -> {threads}"


def _backlog_text(held: Round, row: int) -> str:
    layout, own = held.layout, float(held.demand.backlog_rate[row])
    slo, target = float(layout.slo_lag[row]), float(held.demand.target[row])
    usual = target * float(layout.interval[row] + layout.objective[row])
    text = (
        f"backlog: max(0, {float(held.backlog[row]):.6g} - {usual:.6g} always under way) / {slo:.6g} s"
        f" = {own:.6g}/s"
    )
    upstream = float(held.demand.full[row]) - target - own
    if upstream > 1e-9 * max(1.0, target):
        text += f", and {upstream:.6g}/s that upstream hands on of its own"
    return text


def _ds2_text(held: Round, row: int) -> str:
    target = float(held.demand.target[row]) * float(held.correction[row])
    costs = [s.record_seconds for s in held.cost.job(row).stages]
    rates = " + ".join(f"1 / {1 / c:.6g}/s" for c in costs if c > 0)
    need = target * math.fsum(costs)
    return (
        f"pi = ceil({target:.6g}/s x ({rates})) = ceil({need:.6g}) = {max(1, math.ceil(need * (1 - 1e-9)))}"
    )


def _verb(threads: int) -> str:
    return "carries" if threads == 1 else "carry"


def list_some(parts: list[str], most: int = 5) -> str:
    """The first few, and how many more."""
    rest = len(parts) - most
    return ", ".join(parts[:most]) + (f" and {rest} more" if rest > 0 else "")
