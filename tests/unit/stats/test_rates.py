"""Rates of known series."""

from __future__ import annotations

import random

import pytest

from hotlap.stats.rates import rate

MS = 1_000_000


def test_equal_stretches_have_no_spread() -> None:
    found = rate([(8, 100 * MS)] * 20)
    assert found is not None
    assert [found.per_s, found.low, found.high] == pytest.approx([80.0] * 3)


def test_a_rate_is_a_ratio_of_sums_not_a_mean_of_ratios() -> None:
    found = rate([(10, 100 * MS), (10, 300 * MS)])
    assert found is not None
    assert found.per_s == pytest.approx(50.0)
    assert found.low is None


def test_nothing_has_no_rate() -> None:
    assert rate([]) is None
    assert rate([(0, 5)]) is None
    assert rate([(3, 0)]) is None


def test_rounds_are_not_parted() -> None:
    found = rate([(8, 100 * MS), (8, 0)] * 20, together=2)
    assert found is not None
    assert found.low == pytest.approx(160.0)
    assert found.high == pytest.approx(160.0)


def test_the_interval_holds_the_true_rate_as_often_as_it_says() -> None:
    chance = random.Random(7)
    held = 0
    for _ in range(200):
        series = [(1.0, round(MS * chance.gammavariate(4, 2.5))) for _ in range(60)]
        found = rate(series)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        held += found.low <= 100.0 <= found.high
    # 95 % of them, a little fewer as 24 blocks are few; a binomial bound around 0.9.
    assert held >= 170
