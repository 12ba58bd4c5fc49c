"""Trends: found where they are, not made by noise or by single stalls."""

from __future__ import annotations

import random

import pytest

from hotlap.stats.trend import trend


def test_a_line_is_found_with_its_ends() -> None:
    found = trend([100.0 + i for i in range(240)])
    assert found.certain
    assert found.start == pytest.approx(100.0, abs=10.0)
    assert found.end == pytest.approx(339.0, abs=10.0)
    assert found.growth == pytest.approx(3.3, abs=0.4)


def test_a_flat_series_with_stalls_has_no_growth() -> None:
    chance = random.Random(1)
    series = [100.0 + chance.random() for _ in range(400)]
    for place in (300, 350, 390):
        series[place] = 5_000.0
    assert trend(series).growth == pytest.approx(1.0, abs=0.01)


def test_noise_is_certain_at_most_rarely() -> None:
    chance = random.Random(2)
    certain = sum(trend([chance.gauss(100, 10) for _ in range(200)]).certain for _ in range(300))
    assert certain <= 12


def test_a_falling_series_is_certain_and_falls() -> None:
    found = trend([500.0 - i for i in range(100)])
    assert found.certain
    assert found.growth < 1.0


def test_too_few_values_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 8"):
        trend([1.0] * 7)
