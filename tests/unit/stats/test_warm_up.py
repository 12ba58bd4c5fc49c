"""Generated series whose warm-up is known."""

from __future__ import annotations

import random

import pytest

from hotlap.stats.warm_up import steady_start


def _noise(count: int, seed: int, level: int = 1_000_000, spread: float = 0.1) -> list[int]:
    generator = random.Random(seed)
    return [int(level * max(0.2, generator.gauss(1.0, spread))) for _ in range(count)]


@pytest.mark.parametrize("seed", range(50))
@pytest.mark.parametrize("count", [40, 200])
def test_pure_noise_has_no_warm_up(seed: int, count: int) -> None:
    assert steady_start(_noise(count, seed)) == 0


@pytest.mark.parametrize("slow", [1, 2, 7, 18, 20])
@pytest.mark.parametrize("seed", range(10))
def test_slow_first_steps_are_cut_exactly(slow: int, seed: int) -> None:
    times = _noise(200, seed)
    times[:slow] = [value * 5 for value in times[:slow]]
    assert steady_start(times) == slow


def test_a_first_step_of_a_minute_is_cut() -> None:
    assert steady_start([60_000_000_000, *_noise(30, 1)]) == 1


def test_fast_first_steps_out_of_a_full_queue_are_cut() -> None:
    times = _noise(200, 4)
    times[:8] = [value // 10 for value in times[:8]]
    assert steady_start(times) == 8


@pytest.mark.parametrize("seed", range(10))
def test_a_ramp_is_cut_near_its_end(seed: int) -> None:
    ramp = [
        int(value * (5 - 4 * at / 50)) for at, value in enumerate(_noise(50, seed, spread=0.02))
    ]
    start = steady_start(ramp + _noise(150, seed + 100, spread=0.02))
    assert 40 <= start <= 50


@pytest.mark.parametrize("every", [10, 25, 60])
@pytest.mark.parametrize("seed", range(10))
def test_periodic_spikes_are_no_warm_up(every: int, seed: int) -> None:
    times = _noise(300, seed)
    for at in range(every - 1, len(times), every):
        times[at] *= 40
    assert steady_start(times) == 0


def test_a_spike_right_at_the_start_costs_one_step() -> None:
    times = _noise(300, 5)
    for at in range(0, len(times), 20):
        times[at] *= 40
    assert steady_start(times) == 1


@pytest.mark.parametrize("seed", range(20))
def test_two_kinds_of_steps_are_no_warm_up(seed: int) -> None:
    generator = random.Random(seed)
    times = [value * generator.choice((1, 3)) for value in _noise(200, seed)]
    assert steady_start(times) == 0


def test_alternating_steps_are_no_warm_up() -> None:
    assert (
        steady_start([value * (1 + 4 * (at % 2)) for at, value in enumerate(_noise(200, 2))]) == 0
    )


@pytest.mark.parametrize("seed", range(10))
def test_a_growing_series_is_no_warm_up(seed: int) -> None:
    growing = [int(value * (1 + at / 100)) for at, value in enumerate(_noise(300, seed))]
    assert steady_start(growing) == 0


def test_never_more_than_half() -> None:
    times = [10_000_000] * 150 + [1_000_000] * 150
    assert steady_start(times) <= 150
    assert steady_start([10**9] * 190 + [10**6] * 10) <= 100


def test_differences_that_do_not_matter_are_no_warm_up() -> None:
    assert steady_start([1_020_000] * 50 + [1_000_000] * 50) == 0


@pytest.mark.parametrize("count", range(9))
def test_short_series(count: int) -> None:
    assert steady_start([5] * count) == 0
