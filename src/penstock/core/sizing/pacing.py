"""When a proposal becomes an action: the scaling manager of DS2 4.2.1-4.2.2, as a state machine over columns.

Rules: warm-up after every action and at the start; jobs joined by topics act together, so one waits for
the other's warm-up; activation combines proposals; small changes are noise; what was lent for a backlog is given back
when it is gone; scaling in needs room; an action that made things worse is undone once and its size barred; actions
without gain end in an alert, which stands until another demand comes. Knows numbers of threads and rates, not how they were
found.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from penstock.core.sizing.gather import Counters
from penstock.core.sizing.layout import Bools, Floats, Ints, Layout
from penstock.core.sizing.trend import KEPT, push

GAIN = 0.05
"""An action that gained less than this share had no effect."""
SAME_DEMAND_SHARE = 0.10
NEW_DEMAND_SHARE = 0.20
MOST_CORRECTION = 1.5
EVEN = 1.2
"""Busiest over mean instance up to which work is spread evenly."""
ALIVE_INTERVALS = 3.0
MOST_HELD_ROUNDS = 3
"""Rounds in a row that a scale-in is held because a source's rate is changing: some never cease to."""
PATIENCE_ROUNDS = 2
"""Rounds that jobs wait for one that they feed, or that feeds them, to be measured for the first time."""

CODES = (
    "fits", "up", "down", "give back", "warm-up", "waits", "small", "lent", "room", "changing",
    "activation", "barred", "roll back", "alert", "slots", "unscalable", "set aside",
)  # fmt: skip
CODE = {name: i for i, name in enumerate(CODES)}


@dataclass(frozen=True, slots=True, eq=False)
class Pace:
    """What the scaling manager remembers, by job."""

    warm_left: Ints
    seen_until: Floats
    """End of the newest window taken in."""
    wants: Floats
    """Newest proposals, oldest first."""
    backlogs: Floats
    """Backlog at the newest windows' ends, oldest first."""
    loan: Ints
    """Threads that are there only to work off a backlog."""
    correction: Floats
    corrected_target: Floats
    action_at: Floats
    action_from: Ints
    action_to: Ints
    judged: Bools
    achieved_before: Floats
    capacity_before: Floats
    target_before: Floats
    ineffective: Ints
    alert_target: Floats
    """Target at which it gave up; NaN while it has not."""
    held: Ints
    """Rounds in a row in which a scale-in was held because the source's rate was changing."""
    waited: Ints
    barred: Mapping[int, frozenset[int]] = field(default_factory=dict[int, frozenset[int]])


@dataclass(frozen=True, slots=True, eq=False)
class Facts:
    """What a round found out, by job."""

    now: float
    threads: Ints
    wanted: Ints
    """Need with the backlog's share, inside the job's limits."""
    steady: Ints
    """Need without it."""
    target: Floats
    achieved: Floats
    """Records in per second of the newest window."""
    capacity: Floats
    """Records per second that the present threads carry."""
    ready: Bools
    """Whether there is a proposal at all."""
    unmeasured: Bools
    """Never measured so far, and nothing wrong with it."""
    fresh: Bools
    """Whether a new window came."""
    warm: Bools
    """Whether what came is still of the warm-up, and ignored."""
    backlogged: Bools
    growing: Bools
    """Whether the backlog trends upwards."""
    changing: Bools


def start_pace(layout: Layout) -> Pace:
    """The start counts as an action: rates settle first."""
    n, unknown = len(layout), np.full(len(layout), np.nan)
    zero, no = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.bool_)
    return Pace(
        warm_left=layout.warm_up, seen_until=np.full(n, -np.inf),
        wants=np.full((n, int(layout.activation.max(initial=1))), np.nan), backlogs=np.full((n, KEPT), np.nan),
        loan=zero, correction=np.ones(n), corrected_target=unknown, action_at=np.full(n, -np.inf),
        action_from=zero, action_to=zero, judged=~no, achieved_before=unknown, capacity_before=unknown,
        target_before=unknown, ineffective=zero, alert_target=unknown, held=zero, waited=zero,
    )  # fmt: skip


def note_windows(
    layout: Layout, pace: Pace, new: Counters, idle: Bools, now_threads: Ints
) -> tuple[Pace, Bools]:
    """Take in that windows closed: (pace, jobs with a new window that counts). A job without work needs no warm-up.

    What still ran with the threads of before an action doesn't count, unless the job has those again; nor do batches
    that admission held small while it learnt, before anything is settled.
    """
    n = len(layout)
    fresh = np.zeros(n, dtype=np.bool_)
    fresh[new.rows] = True
    seen, backlog = pace.seen_until.copy(), np.full(n, np.nan)
    seen[new.rows] = new.ended_at
    backlog[new.rows] = new.backlog
    threads = np.zeros(n, dtype=np.int64)
    threads[new.rows] = new.threads
    growing = np.zeros(n, dtype=np.bool_)
    growing[new.rows] = new.growing
    old = (threads == pace.action_from) & (now_threads != pace.action_from)
    with np.errstate(invalid="ignore"):
        counts = fresh & (seen >= pace.action_at + 0.5 * layout.policy_interval) & ~old
        counts &= ~((pace.warm_left > 0) & growing)
    warm_left = np.maximum(0, pace.warm_left - (counts | (idle & ~fresh)))
    return (
        replace(
            pace,
            seen_until=np.where(np.isfinite(seen), seen, pace.seen_until),
            warm_left=warm_left,
            backlogs=push(pace.backlogs, counts & np.isfinite(backlog), backlog),
        ),
        counts,
    )


def correct_targets(layout: Layout, pace: Pace, facts: Facts, imbalance: Floats) -> Pace:
    """The target-ratio rule: replaced, never compounded; retired when the target is another one."""
    with np.errstate(divide="ignore", invalid="ignore"):
        behind = facts.achieved < layout.target_ratio * facts.target
        even = ~(imbalance > EVEN)
        due = facts.ready & facts.fresh & ~facts.warm & behind & even & facts.growing
        due &= (facts.steady <= facts.threads) & (facts.achieved > 0)
        factor = np.minimum(facts.target / facts.achieved, MOST_CORRECTION)
        moved = np.abs(facts.target - pace.corrected_target) > SAME_DEMAND_SHARE * pace.corrected_target
    correction = np.where(due, factor, np.where(moved, 1.0, pace.correction))
    return replace(
        pace,
        correction=correction,
        corrected_target=np.where(due, facts.target, np.where(moved, np.nan, pace.corrected_target)),
    )


def propose_changes(layout: Layout, pace: Pace, facts: Facts) -> tuple[Pace, Ints, Ints]:
    """(pace, threads that each job should have next, code of the reason)."""
    settled = facts.ready & ~facts.warm
    pace, wanted, active = _activate(layout, pace, facts, settled)
    p = facts.threads
    share = layout.scale_in_share
    unlent = np.maximum(1, p - pace.loan)
    up = wanted > p
    lending = facts.backlogged & (pace.loan > 0)
    down = (wanted < share * p) & (~lending | (facts.steady < share * unlent)) | (p > layout.most)
    back = ~up & ~down & (pace.loan > 0) & ~facts.backlogged & (wanted < p)
    to = np.where(up | down, wanted, np.where(back, np.maximum(wanted, unlent), p))
    code = np.select([up, down, back], [CODE["up"], CODE["down"], CODE["give back"]], CODE["fits"])
    code = np.where(
        (code == CODE["fits"]) & (wanted < p), np.where(lending, CODE["lent"], CODE["room"]), code
    )
    margin = np.where(layout.min_change >= 0, layout.min_change, np.where(p > 10, 1, 0))
    inside = (p >= layout.least) & (p <= layout.most)
    small = (np.abs(to - p) <= margin) & (to != p) & inside & (down | (up & ~facts.growing))
    held = (to < p) & active & ~small & facts.changing & (pace.held < MOST_HELD_ROUNDS) & settled
    holds = [
        (~active, "activation"), (small, "small"), (held, "changing"),
    ]  # fmt: skip
    for mask, name in holds:
        stopped = mask & (to != p)
        to, code = np.where(stopped, p, to), np.where(stopped, CODE[name], code)
    held = np.where(held, pace.held + 1, np.where(facts.changing & (to < p), pace.held, 0))
    pace, blocked = _wait(layout, replace(pace, held=held), facts)
    pace, to, code = _judge(layout, pace, facts, settled & ~blocked, (to, code))
    to, code = _without_barred(pace, p, to, code)
    for mask, name in ((blocked, "waits"), (facts.warm, "warm-up")):
        to, code = np.where(mask, p, to), np.where(mask & facts.ready, CODE[name], code)
    code = np.where(np.isfinite(pace.alert_target) & (to == p) & (wanted > p), CODE["alert"], code)
    code = np.where(facts.ready, code, np.where(layout.scalable, CODE["set aside"], CODE["unscalable"]))
    return pace, np.where(facts.ready, to, p), code


def note_actions(layout: Layout, pace: Pace, facts: Facts, to: Ints, code: Ints) -> Pace:
    """Remember what is done now, so that it can be judged."""
    acts = to != facts.threads
    if not acts.any():
        return pace
    base = np.maximum(facts.steady, facts.threads - pace.loan)
    lent = np.where(to > facts.threads, to - base, np.where(facts.backlogged, to - facts.steady, 0))
    undone = code == CODE["roll back"]
    return replace(
        pace,
        warm_left=np.where(acts, layout.warm_up, pace.warm_left),
        held=np.where(acts, 0, pace.held),
        wants=np.where(acts[:, None], np.nan, pace.wants),
        backlogs=np.where(acts[:, None], np.nan, pace.backlogs),
        loan=np.where(acts, np.maximum(0, lent), pace.loan),
        action_at=np.where(acts, facts.now, pace.action_at),
        action_from=np.where(acts, facts.threads, pace.action_from),
        action_to=np.where(acts, to, pace.action_to),
        judged=np.where(acts, undone | (to < facts.threads), pace.judged),
        achieved_before=np.where(acts, facts.achieved, pace.achieved_before),
        capacity_before=np.where(acts, facts.capacity, pace.capacity_before),
        target_before=np.where(acts, facts.target, pace.target_before),
    )


def _activate(layout: Layout, pace: Pace, facts: Facts, settled: Bools) -> tuple[Pace, Ints, Bools]:
    """Proposals of the last rounds combined; not active before there are enough."""
    width = pace.wants.shape[1]
    if width == 1:
        return pace, facts.wanted, np.ones(len(layout), dtype=np.bool_)
    wants = push(pace.wants, settled, facts.wanted.astype(np.float64))
    age = np.array(range(width, 0, -1), dtype=np.int64)
    used = np.where(age <= layout.activation[:, None], wants, np.nan)
    counted = np.sum(np.isfinite(used), axis=1)
    some = np.where(counted[:, None] > 0, used, facts.wanted[:, None])
    combined = np.where(
        layout.activation_median, np.ceil(np.nanmedian(some, axis=1)), np.nanmax(some, axis=1)
    )
    return replace(pace, wants=wants), combined.astype(np.int64), counted >= layout.activation


def _judge(
    layout: Layout, pace: Pace, facts: Facts, settled: Bools, change: tuple[Ints, Ints]
) -> tuple[Pace, Ints, Ints]:
    """Look at what the last scale-up brought: undo what made things worse, count what brought nothing, then give up."""
    to, code = change
    p = facts.threads
    due = settled & facts.fresh & ~pace.judged & (pace.action_to == p) & (p > pace.action_from)
    with np.errstate(invalid="ignore"):
        same = np.abs(facts.target - pace.target_before) <= SAME_DEMAND_SHARE * pace.target_before
        worse = due & same & (facts.capacity < (1 - layout.roll_back_loss) * pace.capacity_before)
        vain = due & ~worse & (to > p) & (facts.achieved < (1 + GAIN) * pace.achieved_before)
        moved = np.abs(facts.target - pace.alert_target) > NEW_DEMAND_SHARE * pace.alert_target
    ineffective = np.where(
        vain, pace.ineffective + 1, np.where(due | moved | (facts.wanted < p), 0, pace.ineffective)
    )
    alert_target = np.where(moved | (facts.wanted < p), np.nan, pace.alert_target)
    gives_up = settled & (to > p) & ((ineffective >= layout.max_ineffective) | np.isfinite(alert_target))
    to, code = np.where(gives_up, p, to), np.where(gives_up, CODE["alert"], code)
    alert_target = np.where(gives_up & np.isnan(alert_target), facts.target, alert_target)
    barred = dict(pace.barred)
    for row in np.flatnonzero(worse).tolist():
        size = int(p[row])
        if size not in barred.get(row, frozenset[int]()):
            barred[row] = barred.get(row, frozenset[int]()) | {size}
            to[row], code[row] = pace.action_from[row], CODE["roll back"]
    pace = replace(
        pace, judged=pace.judged | due, ineffective=ineffective, alert_target=alert_target, barred=barred
    )
    return pace, to, code


def _without_barred(pace: Pace, p: Ints, to: Ints, code: Ints) -> tuple[Ints, Ints]:
    """A size that made things worse is not tried again: the nearest one towards the present size is taken."""
    for row, sizes in pace.barred.items():
        while int(to[row]) in sizes and to[row] != p[row]:
            to[row] += 1 if to[row] < p[row] else -1
            code[row] = CODE["barred"] if to[row] == p[row] else code[row]
    return to, code


def _wait(layout: Layout, pace: Pace, facts: Facts) -> tuple[Pace, Bools]:
    """Jobs whose neighbours still warm up, or were not measured yet: they act together, but not for ever."""
    alive = pace.seen_until > facts.now - ALIVE_INTERVALS * layout.policy_interval
    warming = facts.warm & alive & facts.ready
    parts = int(layout.component.max(initial=0)) + 1
    warm = np.bincount(layout.component, weights=warming, minlength=parts) > 0
    lacking = np.bincount(layout.component, weights=facts.unmeasured, minlength=parts) > 0
    known = np.bincount(layout.component, weights=facts.ready, minlength=parts) > 0
    patient = (lacking & known & ~warm)[layout.component] & (pace.waited < PATIENCE_ROUNDS)
    return replace(pace, waited=np.where(patient, pace.waited + 1, pace.waited)), warm[
        layout.component
    ] | patient
