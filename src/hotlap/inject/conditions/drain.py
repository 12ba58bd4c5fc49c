"""A loader alone: batches are taken out of it as fast as it gives them.

The clock starts when what lay ready has been taken, and stops at a whole round of the workers:
they tend to deliver together, and half a round would count as a gain.
"""

from __future__ import annotations

import random
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from time import perf_counter_ns
from typing import Any, Final

from hotlap.inject.conditions import batches
from hotlap.inject.conditions.deliveries import Source, is_iterable
from hotlap.inject.conditions.replay import live_iterator
from hotlap.sites.steering import Own

_NS: Final = 1_000_000_000
_KEPT: Final = 2000
_RESTARTS: Final = 3
"""After so many epochs that gave nothing to measure, a data set is too short."""

Arrivals = list[tuple[int, int | None]]
"""When a batch was there, and how many samples it held."""


@dataclass
class Drained:
    """What came out of a loader.

    intervals: nanoseconds from one batch to the next, in order. segments: the instants between
    which it was measured; others lie between epochs.
    """

    begin_ns: int = 0
    end_ns: int = 0
    batches: int = 0
    samples: int | None = 0
    intervals: list[int] = field(default_factory=list)
    segments: list[tuple[int, int]] = field(default_factory=list)
    ended_by: str = ""
    notes: list[str] = field(default_factory=list)


class Tap:
    """One loader whose batches are taken out.

    iterator: where the batches come from; None to begin with one of its own. begin: makes
    another iterator when one is exhausted. pull: takes the next batch out of an iterator.
    workers: how many it has. skip: batches that are not measured at first. expected: the
    loader's batch size, None if unknown.
    """

    def __init__(
        self,
        iterator: Any,
        begin: Callable[[], Any],
        pull: Callable[[Any], Any],
        workers: int,
        skip: int,
        expected: int | None,
    ) -> None:
        self.round_of = max(1, workers)
        self.restarts = 0
        self._iterator = iterator
        self._scripts = iterator
        self._made: list[Any] = []
        self._begin = begin
        self._pull = pull
        self._skip = skip
        self._expected = expected
        self._given = 1

    def take(self) -> tuple[int | None, bool]:
        """Take the next batch, over the ends of epochs; raises StopIteration if there is none.

        Returns how many samples it held (None if unknown), and whether it is to be measured.
        """
        if self._iterator is None:
            self._restart()
        while True:
            try:
                batch = self._pull(self._iterator)
                break
            except StopIteration:
                if not self._given:
                    raise
                self.restarts += 1
                self._restart()
                # Of the first round, which waits for the workers to start, only the last arrival
                # counts: as the beginning of the second.
                self._skip = self.round_of - 1
        self._given += 1
        self._skip -= 1
        return batches.samples(batch, self._expected), self._skip < 0

    def _restart(self) -> None:
        self._given = 0
        self._iterator = self._begin()
        self._made.append(self._iterator)

    def shut_down(self) -> None:
        """End the workers of every iterator that was made here."""
        for iterator in self._made:
            # With persistent workers the loader gives its one iterator, the script's, again.
            if iterator is not self._scripts and hasattr(iterator, "_shutdown_workers"):
                iterator._shutdown_workers()
        self._made.clear()


class Taps:
    """Several loaders that a step takes from, in the proportion in which it does."""

    def __init__(self, taps: list[Tap], weights: list[int]) -> None:
        self._taps = taps
        least = max(1, min(weights, default=1))
        self._order = [
            tap
            for tap, weight in zip(taps, weights, strict=True)
            for _ in range(min(64, max(1, round(weight / least))))
        ]
        self._next = 0
        self.round_of = len(self._order) * max(tap.round_of for tap in taps)

    @property
    def restarts(self) -> int:
        """How often a loader was gone through anew."""
        return sum(tap.restarts for tap in self._taps)

    def take(self) -> tuple[int | None, bool]:
        """Take the next batch, as ``Tap.take``."""
        tap = self._order[self._next % len(self._order)]
        self._next += 1
        return tap.take()

    def shut_down(self) -> None:
        """End the workers of every iterator that was made here."""
        for tap in self._taps:
            tap.shut_down()


def drain(taps: Taps, steps: int, seconds: float) -> Drained:
    """Take batches out of loaders until a bound is met; see ``WindowPlan`` for the bounds.

    Raises what the loaders raise.
    """
    found = Drained()
    until = perf_counter_ns() + int(seconds * _NS)
    round_of = taps.round_of
    steps = -(-steps // round_of) * round_of
    arrivals: Arrivals = []
    segments = [arrivals]
    restarts = seen = measured = 0
    while not found.ended_by:
        try:
            size, counts = taps.take()
        except StopIteration:
            found.ended_by = "exhausted"
            break
        now = perf_counter_ns()
        seen += 1
        if taps.restarts != restarts:
            restarts = taps.restarts
            arrivals = []
            segments.append(arrivals)
        if counts:
            arrivals.append((now, size))
            if len(arrivals) > 1 and (len(arrivals) - 1) % round_of == 0:
                measured += round_of
        if measured >= steps:
            found.ended_by = "steps"
        elif now >= until:
            found.ended_by = "seconds"
        elif restarts >= _RESTARTS and not measured:
            found.ended_by = "exhausted"
    _sum_up(found, segments, round_of)
    if restarts:
        found.notes.append(f"the data was gone through {restarts} more times")
    if not found.batches:
        found.notes.append(f"{seen} batches came: too few after those that lay ready")
    return found


def _sum_up(found: Drained, segments: list[Arrivals], round_of: int) -> None:
    for arrivals in segments:
        whole = (len(arrivals) - 1) // round_of * round_of
        if whole < 1:
            continue
        kept = arrivals[: whole + 1]
        found.begin_ns = found.begin_ns or kept[0][0]
        found.end_ns = kept[-1][0]
        found.batches += whole
        found.segments.append((kept[0][0], kept[-1][0]))
        for (before, _), (after, size) in pairwise(kept):
            found.intervals.append(after - before)
            known = found.samples is not None and size is not None
            found.samples = (found.samples or 0) + (size or 0) if known else None
    if not found.batches:
        found.samples = None


def tap_of(source: Source, own: Own) -> Tap:
    """Return the tap of a training loader as it stands, in the middle of its epoch.

    Raises LookupError, in words, where the loader is gone or cannot be drained.
    """
    loader = loader_of(source)
    return Tap(
        live_iterator(source),
        lambda: own.iter(loader),
        own.next,
        int(loader.num_workers),
        source.queued(),
        source.expected,
    )


def tap_with(source: Source, own: Own, workers: int) -> tuple[Tap, list[str]]:
    """Return the tap of a new loader over the same data with so many workers, and notes.

    Raises LookupError, in words, as ``tap_of``; else what ``DataLoader`` raises.
    """
    loader = loader_of(source)
    notes = []
    place = sys.modules["torch"].utils.data.DataLoader
    if type(loader).__iter__ is not place.__iter__:
        notes.append(f"what {type(loader).__name__} itself adds to a DataLoader was left out")
    if is_iterable(loader) and workers > 1:
        notes.append(
            "the data is a stream: where its workers do not share it out, each reads all of it"
        )
    other = place.__new__(place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # more workers than cores are what we want to see
        own.init(other, **_arguments(loader, workers))
    # The first round waits for the workers to start, in the second they open what they need.
    skip = max(1, 2 * workers - 1)
    return Tap(None, lambda: own.iter(other), own.next, workers, skip, source.expected), notes


def loader_of(source: Source) -> Any:
    """Return a training loader; raises LookupError, in words, where it is gone or in the way."""
    loader = source.loader() if source.loader is not None else None
    if loader is None:
        raise LookupError("the training loader no longer exists")
    torch = sys.modules["torch"]
    pipe = getattr(torch.utils.data, "IterDataPipe", ())
    together = torch.distributed.is_available() and torch.distributed.is_initialized()
    if together and isinstance(loader.dataset, pipe) and torch.distributed.get_world_size() > 1:
        # It asks all ranks for a seed at each epoch: one that is quicker would wait for ever.
        raise LookupError("a data pipe of several ranks cannot be drained by each alone")
    return loader


def _arguments(loader: Any, workers: int) -> dict[str, Any]:
    given: dict[str, Any] = {
        "dataset": loader.dataset,
        "num_workers": workers,
        "collate_fn": loader.collate_fn,
        "pin_memory": loader.pin_memory,
        "timeout": loader.timeout if workers else 0,
        "worker_init_fn": loader.worker_init_fn,
        "generator": loader.generator,
    }
    if workers:
        given["multiprocessing_context"] = loader.multiprocessing_context
        given["prefetch_factor"] = loader.prefetch_factor or 2
        # Its own epochs follow each other without a new start of the workers.
        given["persistent_workers"] = True
        if not getattr(loader, "in_order", True):
            given["in_order"] = False
    if is_iterable(loader):
        given.update(batch_size=loader.batch_size, drop_last=loader.drop_last)
    elif loader.batch_sampler is not None:
        given["batch_sampler"] = loader.batch_sampler
    else:
        given.update(batch_size=None, sampler=loader.sampler)
    return given


@contextmanager
def chance_kept() -> Iterator[None]:
    """Give the script's random numbers back as they were: sampler and data set draw from them."""
    torch = sys.modules["torch"]
    numpy = sys.modules.get("numpy")
    before = torch.get_rng_state(), random.getstate()
    theirs = numpy.random.get_state() if numpy is not None else None
    try:
        yield
    finally:
        torch.set_rng_state(before[0])
        random.setstate(before[1])
        if numpy is not None and theirs is not None:
            numpy.random.set_state(theirs)


def thinned(series: list[int]) -> tuple[int, ...]:
    """Return at most 2,000 of a series, evenly."""
    stride = -(-len(series) // _KEPT) or 1
    return tuple(series[::stride])
