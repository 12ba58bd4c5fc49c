"""Ratios of step times: right in the middle, honest at the edges."""

from __future__ import annotations

import random

import pytest

from hotlap.stats.ratio import ratio


def _steps(middle: int, count: int, seed: int, spread: float = 0.05) -> list[int]:
    chance = random.Random(seed)
    return [round(middle * (1 + spread * (chance.random() - 0.5))) for _ in range(count)]


def test_twice_as_fast_is_a_ratio_of_two() -> None:
    found = ratio([_steps(2000, 80, 1)], [_steps(1000, 80, 2)])
    assert found is not None
    assert found.low <= found.mid <= found.high
    assert found.mid == pytest.approx(2.0, rel=0.03)
    assert found.high - found.low < 0.1


def test_equal_series_cannot_be_told_apart() -> None:
    within = 0
    for seed in range(20):
        found = ratio([_steps(1000, 60, seed)], [_steps(1000, 60, 100 + seed)])
        assert found is not None
        within += found.low <= 1.0 <= found.high
        assert found.spread < 0.05
    assert within >= 16


def test_windows_that_differ_from_each_other_widen_the_interval() -> None:
    one = ratio([_steps(1000, 60, 1)], [_steps(1000, 60, 2)])
    two = ratio([_steps(1000, 60, 1), _steps(1500, 60, 3)], [_steps(1000, 60, 2)])
    assert one is not None
    assert two is not None
    assert two.high - two.low > 3 * (one.high - one.low)


def test_spread_is_a_share_whichever_side_is_longer() -> None:
    slower = ratio([_steps(1000, 40, 1)], [_steps(4000, 40, 2)])
    faster = ratio([_steps(4000, 40, 2)], [_steps(1000, 40, 1)])
    assert slower is not None
    assert faster is not None
    assert slower.spread == pytest.approx(0.75, abs=0.03)
    assert faster.spread == pytest.approx(0.75, abs=0.03)


def test_too_few_steps_give_none() -> None:
    assert ratio([[1, 2, 3]], [_steps(1000, 60, 1)]) is None
    assert ratio([], [_steps(1000, 60, 1)]) is None
    assert ratio([[0] * 10], [_steps(1000, 60, 1)]) is None


def test_the_same_series_give_the_same_interval() -> None:
    series = _steps(1000, 60, 5), _steps(900, 60, 6)
    assert ratio([series[0]], [series[1]]) == ratio([series[0]], [series[1]])
