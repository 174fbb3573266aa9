"""Threads against slots: what fits is granted, what doesn't is said; executors come and go where a container is elastic.

Rules: nobody shrinks for another here; what keeps up comes before what works off a backlog; who has the higher
priority comes first; among equals, in proportion to what they ask for.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.core.sizing.layout import Ints
from penstock.model.observations import Observation


def slots_at_most(observation: Observation) -> int:
    """Slots that there can be; 0 when not known."""
    if observation.executors_max > 0 and observation.slots_per_executor > 0:
        return max(observation.slots, observation.executors_max * observation.slots_per_executor)
    return observation.slots


def grant_threads(wanted: Ints, steady: Ints, threads: Ints, priority: Ints, slots: int) -> Ints:
    """Threads of each job within the slots (0: no bound)."""
    if slots <= 0 or int(wanted.sum()) <= slots:
        return wanted
    granted = np.minimum(wanted, threads)
    room = slots - int(granted.sum())
    for goal in (np.minimum(wanted, np.maximum(steady, granted)), wanted):
        for rank in sorted(set(priority.tolist()), reverse=True):
            asked = np.where(priority == rank, goal - granted, 0)
            share = _share(asked, max(0, room))
            granted = granted + share
            room -= int(share.sum())
    return granted


def _share(asked: Ints, room: int) -> Ints:
    total = int(asked.sum())
    if total <= room:
        return asked
    exact = asked * (room / total)
    share = np.floor(exact).astype(np.int64)
    rest = room - int(share.sum())
    order = np.lexsort((np.arange(len(asked)), share - exact))
    share[order[:rest]] += 1
    return share


def executors_for(total_threads: int, observation: Observation) -> int | None:
    """Executors that hold so many threads; none where their number is fixed or right."""
    each, most = observation.slots_per_executor, observation.executors_max
    if each <= 0 or most <= 0 or observation.executors <= 0:
        return None
    least = max(1, min(observation.executors_min, most))
    wanted = min(most, max(least, math.ceil(total_threads / each)))
    return wanted if wanted != observation.executors else None
