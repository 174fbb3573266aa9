"""The one controller, as far as it goes today: guard, estimate, size, pace, fit into the slots.

`penstock` has every term; `ds2` is the same controller with the batch-time, backlog and room terms switched off and
the paper's mean of per-instance rates. Pure and columnar: one pass over a thousand jobs, no loop over instances.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from penstock.core.controller.rounds import Proposals, Round, Terms
from penstock.core.controller.words import list_some
from penstock.core.sizing.columns import LIMIT, LIMITS, CostColumns, carried_rates, needed_threads
from penstock.core.sizing.demand import Demand, carry_demand, known_source_rates
from penstock.core.sizing.gather import gather_counters
from penstock.core.sizing.layout import Bools, Floats, Ints, Layout, lay_out
from penstock.core.sizing.learning import Knowledge, know_nothing, learn
from penstock.core.sizing.pacing import (
    CODE,
    CODES,
    Facts,
    Pace,
    correct_targets,
    note_actions,
    note_windows,
    propose_changes,
    start_pace,
)
from penstock.core.sizing.slots import executors_for, grant_threads, slots_at_most
from penstock.core.sizing.trend import grows
from penstock.model.decisions import Action, Decision, ScaleExecutors, ScaleThreads, Verdict
from penstock.model.jobs import PipelineSpec
from penstock.model.observations import Observation

PENSTOCK = Terms("penstock", batch_time=True, backlog=True, room=True)
DS2 = Terms("ds2", batch_time=False, backlog=False, room=False)


_IN_THE_WAY = np.array(
    [name not in ("none", "min_threads", "unscalable", "set aside") for name in LIMITS], dtype=np.bool_
)
"""Limits that keep a job from what it needs, by their code."""


@dataclass(frozen=True, slots=True, eq=False)
class SizingState:
    """What the strategy remembers of one pipeline."""

    layout: Layout
    knowledge: Knowledge
    pace: Pace
    sources: Mapping[str, float]
    round: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class _Needs:
    """Threads by the formula, inside each job's limits."""

    wanted: Ints
    steady: Ints
    limit: Ints
    seconds: Floats


class SizingStrategy:
    """One traversal sizes every job."""

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    @property
    def name(self) -> str:
        return self._terms.name

    def start(self, pipeline: PipelineSpec) -> SizingState:
        """State before the first round."""
        layout = lay_out(pipeline)
        if not self._terms.room:
            layout = replace(layout, scale_in_share=np.ones(len(layout)))
        return SizingState(layout, know_nothing(layout), start_pace(layout), {})

    def decide(
        self, state: SizingState, observation: Observation, now: float
    ) -> tuple[SizingState, Decision]:
        """One round: observe, estimate, size, pace, fit."""
        layout, terms = state.layout, self._terms
        threads, missing = _threads_now(layout, observation)
        new, bad = gather_counters(
            layout, observation, state.pace.seen_until, now=now, rates=not terms.batch_time
        )
        warm = state.pace.warm_left > 0
        knowledge = learn(layout, state.knowledge, new, warm, per_instance=not terms.batch_time)
        sources = known_source_rates(layout, observation, state.sources)
        backlog = _backlog_now(layout, observation, new.rows, new.backlog)
        seconds, feasible = _objectives(layout, knowledge.cost, batch_time=terms.batch_time)
        handed_on = _handed_on(layout, knowledge, seconds, threads)
        demand = carry_demand(
            layout, observation, sources, knowledge.selectivity, handed_on, backlog if terms.backlog else None
        )
        idle = (demand.target == 0) & ~(backlog > 0)
        pace, fresh = note_windows(layout, state.pace, new, idle, threads)
        aside = _why_aside(layout, knowledge, demand, missing, bad)
        ready = layout.scalable & _not_in(len(layout), aside)
        needs = _size(layout, knowledge.cost, demand, pace.correction, (seconds, feasible, ready))
        facts = Facts(
            now=now, threads=threads, wanted=needs.wanted, steady=needs.steady, target=demand.target,
            achieved=knowledge.observed, capacity=carried_rates(knowledge.cost, seconds, threads.astype(float)),
            ready=ready, unmeasured=layout.scalable & ~knowledge.known & _not_in(len(layout), bad), fresh=fresh,
            warm=warm, backlogged=demand.full > demand.target, growing=grows(pace.backlogs),
            changing=_changing(layout, observation),
        )  # fmt: skip
        corrected = correct_targets(layout, pace, facts, knowledge.imbalance)
        if not np.array_equal(corrected.correction, pace.correction):
            needs = _size(layout, knowledge.cost, demand, corrected.correction, (seconds, feasible, ready))
            facts = replace(facts, wanted=needs.wanted, steady=needs.steady)
        pace, to, code = propose_changes(layout, corrected, facts)
        to, code, needs = _fit_slots(layout, observation, facts, needs, (to, code))
        pace = note_actions(layout, pace, facts, to, code)
        held = Round(
            terms=terms, layout=layout, now=now, cost=knowledge.cost, known_at=knowledge.at,
            selectivity=knowledge.selectivity, observed=knowledge.observed, demand=demand, handed_on=handed_on,
            seconds=seconds, backlog=backlog, correction=corrected.correction, threads=threads,
            wanted=needs.wanted, steady=needs.steady, limit=needs.limit, to=to, code=code, why_aside=aside,
            alerted=np.isnan(state.pace.alert_target) & np.isfinite(pace.alert_target),
        )  # fmt: skip
        number = state.round + 1
        return SizingState(layout, knowledge, pace, sources, number), _conclude(held, observation, number)


def _threads_now(layout: Layout, observation: Observation) -> tuple[Ints, dict[int, str]]:
    counts = [observation.threads.get(name, 0) for name in layout.names]
    threads = np.array(counts, dtype=np.int64)
    missing = {int(i): "its threads are not known" for i in np.flatnonzero(threads < 1)}
    return np.maximum(1, threads), missing


def _backlog_now(layout: Layout, observation: Observation, rows: Ints, closed: Floats) -> Floats:
    known = observation.backlog
    backlog = np.array([known.get(name, np.nan) for name in layout.names], dtype=np.float64)
    if len(known) < len(layout):
        at_close = np.full(len(layout), np.nan)
        at_close[rows] = closed
        told = np.array([name in known for name in layout.names], dtype=np.bool_)
        backlog = np.where(told, backlog, at_close)
    return np.where(np.isfinite(backlog) & (backlog >= 0), backlog, 0.0)


def _objectives(layout: Layout, cost: CostColumns, *, batch_time: bool) -> tuple[Floats, Bools]:
    """(L, whether the lag objective leaves room for it); where it doesn't, L is the interval."""
    if not batch_time:
        return layout.objective, np.ones(len(layout), dtype=np.bool_)
    feasible = layout.feasible & (layout.slo_lag > layout.interval + cost.overhead)
    return np.where(feasible, layout.objective, layout.interval), feasible


def _handed_on(layout: Layout, knowledge: Knowledge, seconds: Floats, threads: Ints) -> Floats:
    """Most records in per second that a job can ever work on; without bound where that is not known."""
    most = np.where(layout.scalable, layout.most, threads).astype(np.float64)
    carried = carried_rates(knowledge.cost, seconds, most)
    return np.where(knowledge.known & (carried > 0), carried, np.inf)


def _why_aside(
    layout: Layout, knowledge: Knowledge, demand: Demand, missing: Mapping[int, str], bad: Mapping[int, str]
) -> dict[int, str]:
    aside: dict[int, str] = {}
    for i in np.flatnonzero(~np.isfinite(demand.target)).tolist():
        aside[i] = (
            "its demand is not known" if layout.reads[i] else "it reads no topic, so its demand is not known"
        )
    for i in np.flatnonzero(~knowledge.known & ~(demand.full == 0)).tolist():
        aside[i] = "no window with input and useful time yet, so its rates are undefined"
    return {**aside, **missing, **bad}


def _not_in(size: int, rows: Mapping[int, str]) -> Bools:
    mask = np.ones(size, dtype=np.bool_)
    if rows:
        mask[list(rows)] = False
    return mask


def _changing(layout: Layout, observation: Observation) -> Bools:
    """Jobs that are joined to a source whose rate is on its way up or down."""
    if not observation.changing:
        return np.zeros(len(layout), dtype=np.bool_)
    numbers = {number for number, topic in layout.sources if topic in observation.changing}
    readers = [i for i, topics in enumerate(layout.reads) if numbers.intersection(topics)]
    return np.isin(layout.component, layout.component[readers])


def _size(
    layout: Layout, cost: CostColumns, demand: Demand, correction: Floats, given: tuple[Floats, Bools, Bools]
) -> _Needs:
    """Need with and without the backlog's share, clipped to each job's limits, each limit named."""
    seconds, feasible, ready = given
    target = np.where(ready, demand.target, 0.0)
    lent = np.where(ready, demand.full - demand.target, 0.0)
    steady, limit = needed_threads(cost, target * correction * seconds, seconds)
    wanted = steady
    if lent.any():
        wanted, full_limit = needed_threads(cost, (target * correction + lent) * seconds, seconds)
        wanted, limit = np.maximum(wanted, steady), np.where(limit == 0, full_limit, limit)
    limit = np.where(feasible | ~ready, limit, LIMIT["infeasible interval"])
    ceiling = np.where(layout.most_by_partitions, LIMIT["partitions"], LIMIT["max_threads"])
    limit = np.where(wanted > layout.most, ceiling, limit)
    limit = np.where((wanted < layout.least) & (limit == 0), LIMIT["min_threads"], limit)
    limit = np.where(ready, limit, np.where(layout.scalable, LIMIT["set aside"], LIMIT["unscalable"]))
    return _Needs(
        np.clip(wanted, layout.least, layout.most), np.clip(steady, layout.least, layout.most), limit, seconds
    )


def _fit_slots(
    layout: Layout, observation: Observation, facts: Facts, needs: _Needs, change: tuple[Ints, Ints]
) -> tuple[Ints, Ints, _Needs]:
    to, code = change
    keeps = ~facts.ready
    needs = replace(
        needs,
        wanted=np.where(keeps, facts.threads, needs.wanted),
        steady=np.where(keeps, facts.threads, needs.steady),
    )
    granted = grant_threads(to, needs.steady, facts.threads, layout.priority, slots_at_most(observation))
    short = granted < to
    if not short.any():
        return to, code, needs
    code = np.where(short, CODE["slots"], code)
    return granted, code, replace(needs, limit=np.where(short, LIMIT["slots"], needs.limit))


def _conclude(held: Round, observation: Observation, number: int) -> Decision:
    cause = f"{held.terms.name}-{number}"
    acting = np.flatnonzero(held.to != held.threads).tolist()
    actions: list[Action] = [ScaleThreads(held.layout.names[i], int(held.to[i]), cause) for i in acting]
    executors = executors_for(int(held.to.sum()), observation)
    if executors is not None and (acting or executors > observation.executors):
        actions.append(ScaleExecutors(executors, cause))
    verdict = _verdict(held, bool(actions))
    return Decision(
        id=cause,
        at=held.now,
        strategy=held.terms.name,
        verdict=verdict,
        reason=_sentence(held, acting, verdict, executors if len(actions) > len(acting) else None),
        proposals=Proposals(held),
        actions=tuple(actions),
        skipped=_skipped(held, observation),
    )


def _verdict(held: Round, acts: bool) -> Verdict:
    if held.alerted.any():
        return "alert"
    counts = np.bincount(held.code, minlength=len(CODES))
    if counts[CODE["roll back"]]:
        return "roll_back"
    if acts:
        return "scale"
    watching = counts[CODE["warm-up"]] + counts[CODE["waits"]] + counts[CODE["activation"]]
    decided = len(held.code) - watching - counts[CODE["set aside"]] - counts[CODE["unscalable"]]
    return "hold" if decided else "observe"


def _sentence(held: Round, acting: list[int], verdict: Verdict, executors: int | None) -> str:
    names = held.layout.names
    if verdict == "observe":
        return "Observes: rates are not settled yet."
    stuck = [names[i] for i in np.flatnonzero(held.alerted).tolist()]
    alert = f"More threads brought nothing for {list_some(stuck)}: look for skew, or for a slow dependency."
    if not acting and executors is None:
        return alert if stuck else _quiet_sentence(held)
    done = _changes_sentence(held, acting, executors)
    return f"{alert} {done}" if stuck else done


def _changes_sentence(held: Round, acting: list[int], executors: int | None) -> str:
    names = held.layout.names
    changes = [f"{names[i]} {held.threads[i]} -> {held.to[i]}" for i in acting]
    text = f"Threads: {list_some(changes)}" if changes else "Threads stay"
    undone = [names[i] for i in acting if held.code[i] == CODE["roll back"]]
    if undone:
        text += f"; undone for {list_some(undone)}, which carried less than before"
    lent = [i for i in acting if held.to[i] > held.threads[i] and held.to[i] > held.steady[i]]
    if lent:
        extra = [f"{int(held.to[i] - max(held.steady[i], held.threads[i]))} of {names[i]}'s" for i in lent]
        text += f"; {list_some(extra)} only until the backlog is gone"
    return f"{text}; executors: {executors}." if executors is not None else f"{text}."


def _quiet_sentence(held: Round) -> str:
    """Why nothing changes: all is well, or some can't have what they need."""
    stuck = _IN_THE_WAY[held.limit]
    names, limits = held.layout.names, held.limit
    vain = held.code == CODE["alert"]
    short = [
        f"{names[i]} ({'more threads bring nothing' if vain[i] else LIMITS[limits[i]]})"
        for i in np.flatnonzero(stuck | vain).tolist()
    ]
    if short:
        return f"Nothing to change; a limit stands in the way of {list_some(short)}."
    return "Every job has the threads it needs."


def _skipped(held: Round, observation: Observation) -> tuple[str, ...]:
    """Jobs and rungs that were passed over, each with its reason."""
    names = held.layout.names
    skipped = [f"{names[i]}: {why}" for i, why in sorted(held.why_aside.items())]
    total, slots = int(held.to.sum()), slots_at_most(observation)
    if slots and total > slots:
        skipped.append(f"slots: {total} threads share {slots} slots, so some of them wait")
    if np.any(held.to != held.threads) and observation.executors_max <= 0:
        skipped.append("executors: their number is fixed in this container")
    return tuple(skipped)
