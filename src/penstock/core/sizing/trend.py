"""Whether a backlog grows: the Mann-Kendall test over its newest values, for all jobs at once.

It asks only for order, so that one burst is no trend. Fewer than four values tell nothing.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from penstock.core.sizing.layout import Bools, Floats, Ints

KEPT = 8
LEAST = 4
CRITICAL = 1.645
"""One-sided p < .05."""


def grows(values: Floats) -> Bools:
    """Per row of values, oldest first (NaN: none yet), whether they trend upwards."""
    columns = np.ascontiguousarray(values.T)
    count = np.sum(np.isfinite(columns), axis=0)
    if not np.any(count >= LEAST):
        return np.zeros(len(values), dtype=np.bool_)
    earlier, later = _pairs(len(columns))
    above = columns[None] > columns[:, None]  # what is NaN is neither above nor below
    rises, falls = above[earlier, later], above[later, earlier]
    score = np.sum(rises, axis=0, dtype=np.int16) - np.sum(falls, axis=0, dtype=np.int16)
    deviation = np.sqrt(count * (count - 1) * (2 * count + 5) / 18.0)
    return (count >= LEAST) & (score - 1 > CRITICAL * deviation)


@cache
def _pairs(width: int) -> tuple[Ints, Ints]:
    """Places of all pairs of values, the earlier ones and the later ones."""
    return np.triu_indices(width, 1)


def push(values: Floats, rows: Bools, new: Floats) -> Floats:
    """The newest value last, where `rows` says there is one."""
    shifted = np.concatenate([values[:, 1:], new[:, None]], axis=1)
    return np.where(rows[:, None], shifted, values)
