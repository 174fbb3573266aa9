"""Noise is what chance does to two samples of one thing: a real difference stands out, none does not."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.bench.noise import mean_of, noise_of, p99_of, pair_up
from penstock.bench.probe_cost import rows_of


def sample(seed: int, mean: float) -> list[float]:
    return np.random.default_rng(seed).normal(mean, 5.0, 100).tolist()


def test_chance_is_about_as_large_as_the_standard_error() -> None:
    noise = noise_of(sample(1, 200.0), sample(2, 200.0), mean_of)
    assert 0.3 * 5 / 200 / 10 < noise < 4 * 5 / 200 / 10
    assert noise_of(sample(1, 200.0), sample(2, 200.0), p99_of) > noise / 2


def test_two_equal_samples_have_none() -> None:
    assert noise_of([5.0] * 20, [5.0] * 20, mean_of) == 0.0


def test_pairs_are_neighbours_of_both_kinds() -> None:
    marked = [(True, 1.0), (False, 2.0), (False, 3.0), (True, 4.0), (True, 5.0), (True, 6.0), (False, 7.0)]
    assert pair_up(marked) == ([1.0, 4.0, 6.0], [2.0, 3.0, 7.0])


@pytest.mark.parametrize(
    ("ours", "peers", "met"),
    [
        ([200.0, 201.0] * 20, [200.0, 200.0] * 20, True),
        ([210.0, 211.0] * 20, [200.0, 200.0] * 20, False),
        ([260.0, 160.0] * 10, [200.0, 202.0] * 10, None),
    ],
)
def test_a_goal_that_noise_hides_is_neither_met_nor_missed(
    ours: list[float], peers: list[float], met: bool | None
) -> None:
    mean = rows_of(ours, peers, lambda text: None)[0]
    assert mean.met is met
    assert mean.goal is not None and "noise" in mean.goal
