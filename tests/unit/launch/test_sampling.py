"""When samples are taken."""

from __future__ import annotations

import itertools
import os
from typing import Any

import pytest

from hotlap.launch.sampling import Sampling

DAY_S = 86_400


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


class Counting:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def sample(self) -> dict[str, Any]:
        return {"at_s": self._clock.now_s}


def taken_in(seconds: float, tick_s: float) -> list[float]:
    clock = Clock()
    samples: list[dict[str, Any]] = []
    sampling = Sampling(samples.append, Counting(clock), clock_s=clock)
    while clock.now_s < seconds:
        sampling.tick()
        clock.now_s += tick_s
    return [sample["at_s"] for sample in samples]


def test_at_most_once_a_second_from_the_beginning() -> None:
    times = taken_in(60, 0.25)
    assert times == [float(second) for second in range(60)]


def test_number_is_bounded_over_days_and_spread_to_the_end() -> None:
    times = taken_in(20 * DAY_S, 1)
    assert len(times) <= 3000
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps == sorted(gaps)
    assert 20 * DAY_S - times[-1] <= gaps[-1] * 2


def test_facts_are_in_the_first_only() -> None:
    clock = Clock()
    samples: list[dict[str, Any]] = []
    sampling = Sampling(samples.append, Counting(clock), {"cores": 2}, clock)
    sampling.tick()
    sampling.last()
    assert samples == [{"at_s": 0.0, "facts": {"cores": 2}}, {"at_s": 0.0}]


def test_a_failing_source_is_not_asked_at_each_tick() -> None:
    clock = Clock()
    asked: list[float] = []

    class Failing:
        def sample(self) -> dict[str, Any]:
            asked.append(clock.now_s)
            raise OSError("gone")

    sampling = Sampling(lambda _: None, Failing(), clock_s=clock)
    with pytest.raises(OSError, match="gone"):
        sampling.tick()
    sampling.tick()
    assert asked == [0.0]


def test_of_a_real_tree() -> None:
    samples: list[dict[str, Any]] = []
    Sampling.of_tree(samples.append, os.getpid()).tick()
    assert samples[0]["tree_processes"] >= 1
