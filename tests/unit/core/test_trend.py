"""Whether a backlog grows: order alone counts, one burst is no trend, few values tell nothing."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.core.sizing.trend import KEPT, grows, push

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "growing"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8], True),
        ([NAN, NAN, NAN, NAN, 1, 2, 3, 4], True),
        ([NAN, NAN, NAN, NAN, NAN, 1, 2, 3], False),
        ([1, 1, 1, 1, 1, 1, 1, 1], False),
        ([8, 7, 6, 5, 4, 3, 2, 1], False),
        ([1, 1, 1, 900, 1, 1, 1, 1], False),
        ([1, 2, 4, 3, 5, 6, 8, 7], True),
        ([5, 1, 4, 2, 5, 1, 4, 2], False),
        ([NAN] * 8, False),
    ],
)
def test_growth(values: list[float], growing: bool) -> None:
    assert grows(np.array([values], dtype=float)).tolist() == [growing]


def test_each_row_is_judged_by_itself() -> None:
    rows = np.array([list(range(8)), [3.0] * 8, list(range(8, 0, -1))], dtype=float)
    assert grows(rows).tolist() == [True, False, False]


def test_only_the_order_counts() -> None:
    values = np.array([[1.0, 2, 3, 4, 5, 6, 7, 8]])
    assert grows(values**9).all() and grows(values * 1e-9).all()


def test_the_newest_comes_last_where_there_is_one() -> None:
    before = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    after = push(before, np.array([True, False]), np.array([9.0, 9.0]))
    assert after.tolist() == [[2.0, 3.0, 9.0], [4.0, 5.0, 6.0]]
    assert KEPT == 8
