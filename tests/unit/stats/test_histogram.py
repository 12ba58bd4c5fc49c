"""Buckets tile the integers, and quantiles out of them lie within a bucket of the truth."""

from __future__ import annotations

import random

import pytest

from hotlap.stats.histogram import bucket, lower, merge, quantile, total, upper


def _fill(values: list[int]) -> dict[int, int]:
    return merge({bucket(value): 1} for value in values)


def test_small_values_are_exact() -> None:
    assert [bucket(value) for value in range(32)] == list(range(32))
    assert [lower(value) for value in range(32)] == list(range(32))


def test_negative_durations_count_as_nothing() -> None:
    assert bucket(-5) == 0


def test_buckets_tile_without_gap_or_overlap() -> None:
    for number in range(16 * 60):
        assert lower(number) < upper(number) == lower(number + 1)
        assert bucket(lower(number)) == number
        assert bucket(upper(number) - 1) == number


def test_a_bucket_is_at_most_a_sixteenth_wide() -> None:
    for number in range(32, 16 * 60):
        assert (upper(number) - lower(number)) * 16 <= lower(number)


def test_each_power_of_two_has_sixteen_buckets() -> None:
    for power in range(5, 60):
        assert bucket(2 ** (power + 1)) - bucket(2**power) == 16


@pytest.mark.parametrize("q", [0.0, 0.1, 0.5, 0.9, 0.99, 1.0])
def test_quantiles_lie_within_a_bucket_of_the_truth(q: float) -> None:
    generator = random.Random(7)
    values = sorted(int(generator.lognormvariate(16, 0.7)) for _ in range(2001))
    found = quantile(_fill(values), q)
    truth = values[round(q * 2000)]
    assert found is not None
    assert abs(found - truth) <= truth / 16


def test_the_median_of_two_lies_between_them() -> None:
    assert quantile({10: 1, 20: 1}, 0.5) == 15.0


def test_nothing_has_no_quantile() -> None:
    assert quantile({}, 0.5) is None
    assert total({}) == 0


def test_a_quantile_outside_the_unit_interval_is_refused() -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        quantile({1: 1}, 1.5)


def test_merging_keeps_every_duration() -> None:
    one, two = _fill([5, 100, 1000]), _fill([5, 2000])
    assert total(merge([one, two])) == 5
    assert merge([one, two])[5] == 2
