"""Draining a loader that gives batches at instants that we choose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch

from hotlap.inject.conditions import drain

MS = 1_000_000


class Clock:
    """A clock that only batches move."""

    def __init__(self) -> None:
        self.now = 1

    def __call__(self) -> int:
        return self.now


class Workers:
    """So many workers that deliver together every ``ms``; an epoch has ``length`` batches."""

    def __init__(self, clock: Clock, workers: int, length: int, ms: int = 100) -> None:
        self.clock, self.workers, self.length, self.ms = clock, workers, length, ms
        self.begun = 0
        self.ended = 0

    def begin(self) -> Iterator[Any]:
        """Begin an epoch: the first round waits for the workers to start, a second."""
        self.begun += 1
        return self._batches()

    def _batches(self) -> Iterator[Any]:
        self.clock.now += 1000 * MS
        for at in range(self.length):
            if at % self.workers == 0:
                self.clock.now += self.ms * MS
            yield torch.ones(4, 2)
        self.ended += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(drain, "perf_counter_ns", made)
    return made


def tap(loader: Workers, iterator: Any = None, skip: int | None = None) -> drain.Tap:
    """Make the tap of a loader, like that of a new one."""
    first = 2 * loader.workers - 1 if skip is None else skip
    return drain.Tap(iterator, loader.begin, next, loader.workers, first, 4)


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_rate_is_that_of_whole_rounds(clock: Clock, workers: int) -> None:
    loader = Workers(clock, workers, 100)
    found = drain.drain(drain.Taps([tap(loader)], [1]), 10, 1e9)
    assert found.ended_by == "steps"
    assert found.batches == -(-10 // workers) * workers
    assert found.samples == 4 * found.batches
    assert sum(found.intervals) == found.batches // workers * 100 * MS
    assert found.end_ns - found.begin_ns == sum(found.intervals)
    assert found.notes == []


def test_a_new_epoch_is_not_part_of_the_time(clock: Clock) -> None:
    loader = Workers(clock, 2, 12)
    found = drain.drain(drain.Taps([tap(loader)], [1]), 20, 1e9)
    assert found.ended_by == "steps"
    assert loader.begun > 1
    assert sum(found.intervals) * 2 == found.batches * 100 * MS
    assert len(found.segments) == loader.begun
    assert sum(end - begin for begin, end in found.segments) == sum(found.intervals)
    assert found.notes == [f"the data was gone through {loader.begun - 1} more times"]


def test_what_lay_ready_is_not_measured(clock: Clock) -> None:
    loader = Workers(clock, 2, 100)
    iterator = loader.begin()
    found = drain.drain(drain.Taps([tap(loader, iterator, skip=4)], [1]), 10, 1e9)
    assert loader.begun == 1
    assert found.batches == 10
    assert (clock.now - 1) // MS == 1000 + 100 * (4 + 1 + 10 + 1) // 2


def test_seconds_end_it_too(clock: Clock) -> None:
    found = drain.drain(drain.Taps([tap(Workers(clock, 1, 100))], [1]), 10**9, 2.05)
    assert found.ended_by == "seconds"
    assert found.batches == 9  # of the 1.05 seconds after the start, the first batch begins them


def test_an_epoch_without_a_whole_round_ends_it(clock: Clock) -> None:
    loader = Workers(clock, 4, 4)
    found = drain.drain(drain.Taps([tap(loader)], [1]), 10, 1e9)
    assert (found.ended_by, found.batches, found.samples) == ("exhausted", 0, None)
    assert loader.begun == 4
    assert "too few" in found.notes[-1]


def test_a_loader_that_gives_nothing_ends_it(clock: Clock) -> None:
    found = drain.drain(drain.Taps([tap(Workers(clock, 1, 0))], [1]), 10, 1e9)
    assert (found.ended_by, found.batches) == ("exhausted", 0)


def test_several_loaders_give_in_their_proportion(clock: Clock) -> None:
    one, seven = Workers(clock, 1, 1000, ms=10), Workers(clock, 1, 1000, ms=1)
    found = drain.drain(drain.Taps([tap(one), tap(seven)], [3, 21]), 16, 1e9)
    assert found.batches == 16
    assert sum(found.intervals) == 2 * (10 + 7) * MS


def test_what_a_loader_raises_is_passed_on(clock: Clock) -> None:
    def broken(_iterator: Any) -> Any:
        clock.now += 1
        raise RuntimeError("the disk is gone")

    made = drain.Tap(iter(()), lambda: iter(()), broken, 0, 0, None)
    with pytest.raises(RuntimeError, match="the disk is gone"):
        drain.drain(drain.Taps([made], [1]), 10, 1e9)


def test_random_numbers_are_given_back() -> None:
    torch.manual_seed(4)
    expected = torch.rand(3).tolist()
    torch.manual_seed(4)
    with drain.chance_kept():
        torch.rand(10)
    assert torch.rand(3).tolist() == expected
