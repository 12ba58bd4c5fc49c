"""Order statistics against values worked out by hand and against the standard library."""

from __future__ import annotations

import random
import statistics

import pytest

from hotlap.stats.quantiles import far_out, mad, median, quantile


def test_median_of_odd_and_even_counts() -> None:
    assert median([3, 1, 2]) == 2
    assert median([4, 1, 2, 3]) == 2.5


def test_quartiles_agree_with_the_standard_library() -> None:
    values = [random.Random(3).random() for _ in range(101)]
    values = [value * index for index, value in enumerate(values)]
    expected = statistics.quantiles(values, n=4, method="inclusive")
    assert [quantile(values, q) for q in (0.25, 0.5, 0.75)] == pytest.approx(expected)


def test_ends_are_smallest_and_largest() -> None:
    assert quantile([5, 9, 7], 0.0) == 5
    assert quantile([5, 9, 7], 1.0) == 9


def test_nothing_is_none_and_not_zero() -> None:
    assert quantile([], 0.5) is None
    assert median([]) is None
    assert mad([]) is None
    assert far_out([]) is None


def test_mad_ignores_one_wild_value() -> None:
    assert mad([1, 2, 3, 4, 1000]) == 1


def test_far_out_fences() -> None:
    assert far_out([0, 1, 2, 3, 4]) == (1 - 6, 3 + 6)


def test_a_quantile_outside_the_unit_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile([1], -0.1)
