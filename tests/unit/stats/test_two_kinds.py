"""What some of the values have more than the others, where it is known how many these are."""

from __future__ import annotations

import random

import pytest

from hotlap.stats.two_kinds import gap


def test_every_second_one_takes_longer() -> None:
    chance = random.Random(0)
    values = [10.0 + 12.0 * (at % 2) + chance.uniform(-1, 1) for at in range(100)]
    assert gap(values, 0.5) == pytest.approx(12.0, abs=0.5)


def test_of_equal_values_none_takes_longer() -> None:
    chance = random.Random(0)
    values = [chance.gauss(10.0, 1.0) for _ in range(200)]
    assert gap(values, 0.3) == 0.0


def test_another_number_of_dear_ones_is_no_gap() -> None:
    assert gap([10.0] * 90 + [30.0] * 10, 0.5) == 0.0


def test_too_few_tell_nothing() -> None:
    assert gap([1.0, 2.0] * 10, 0.1) is None
    assert gap([1.0, 2.0] * 10, 1.0) is None
