"""The training loader gives batches that it gave before, and its workers rest.

Workers are not stopped by signals: one that has filled its part of the queue sleeps of itself, as
nobody takes batches out. A replay begins when they have come to that, so that they take no core
away, and nothing has to be woken up again on any way out of the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from hotlap.inject.conditions.deliveries import REPLAYED, Deliveries, Source
from hotlap.sites.steering import Own

_REST_S: Final = 15.0
_LOOK_S: Final = 0.002


class Replay:
    """Gives kept batches in turn, and ends an epoch where the loader would.

    own: torch's functions below all observers. deliveries: where the batches are kept.
    """

    def __init__(self, own: Own, deliveries: Deliveries) -> None:
        self.active = False
        self.notes: set[str] = set()
        self._own = own
        self._deliveries = deliveries
        self._turn: dict[int, int] = {}
        self._stand_in: Callable[..., Any] | None = None

    def source_of(self, iterator: Any, known: Any) -> Callable[[], Any] | None:
        """Return what gives the next batch in place of the loader; None for the loader itself."""
        source = self._deliveries.of(known)
        if not self.active or len(source.kept) < 1:
            if REPLAYED in iterator.__dict__ and self._is_over(iterator, source):
                return _stop
            return None
        if self._is_over(iterator, source):
            return _stop
        return lambda: self._next(iterator, source)

    def _is_over(self, iterator: Any, source: Source) -> bool:
        length = source.length()
        if length is None:
            self.notes.add("the length of an epoch is not known: none ended in this window")
            return False
        return bool(iterator._num_yielded + iterator.__dict__.get(REPLAYED, 0) >= length)

    def _next(self, iterator: Any, source: Source) -> Any:
        held = iterator.__dict__
        held[REPLAYED] = held.get(REPLAYED, 0) + 1
        turn = self._turn.get(source.known.ordinal, 0)
        self._turn[source.known.ordinal] = turn + 1
        return source.kept[turn % len(source.kept)].copy()

    def begun(self, loader: Any, begin: Callable[[Any], Any], known: Any) -> Any:
        """Return an iterator for a loader of which one is asked for.

        In a replay it stands in for the loader's own, which is made only when it is needed.
        """
        if not self.active or known is None or not self._deliveries.of(known).kept:
            iterator = begin(loader)
            getattr(iterator, "__dict__", {}).pop(REPLAYED, None)
            return iterator
        if self._stand_in is None:
            self._stand_in = _stand_in_class()
        return self._stand_in(loader, lambda: begin(loader), self._own.next)


def _stop() -> Any:
    raise StopIteration


def _stand_in_class() -> Callable[..., Any]:
    from torch.utils.data import dataloader as place

    class StandIn(place._BaseDataLoaderIter):  # type: ignore[misc] # torch is Any to the checker
        """An iterator whose loader has not been asked for anything yet."""

        def __init__(self, loader: Any, begin: Callable[[], Any], own_next: Any) -> None:
            # What torch's own __next__ looks at; its __init__ would draw from the sampler.
            self._sampler_iter = ()
            self._dataset_kind = None
            self._IterableDataset_len_called = None
            self._num_yielded = 0
            self._profile_name = "enumerate(DataLoader)#replay"
            self._num_workers = loader.num_workers
            self._persistent_workers = loader.persistent_workers
            self._pin_memory = loader.pin_memory
            self._hotlap_begin = begin
            self._hotlap_own_next = own_next
            self._hotlap_real: Any = None
            self._hotlap_loader_of = loader

        def __len__(self) -> int:
            return len(self._hotlap_loader_of)

        def _next_data(self) -> Any:
            if self._hotlap_real is None:
                self._hotlap_real = self._hotlap_begin()
            return self._hotlap_own_next(self._hotlap_real)

        def _shutdown_workers(self) -> None:
            if hasattr(self._hotlap_real, "_shutdown_workers"):
                self._hotlap_real._shutdown_workers()

    return StandIn


def live_iterator(source: Source) -> Any:
    """Return the iterator of torch's that a source's batches come from, or None."""
    iterator = source.iterator() if source.iterator is not None else None
    return getattr(iterator, "_hotlap_real", iterator)


def wait_for_rest(sources: list[Source]) -> bool:
    """Wait until the workers of these loaders have nothing to do; tell whether they came to that.

    That is within the batches that they may make ahead, and at most 15 seconds.
    """
    until = time.monotonic() + _REST_S
    for source in sources:
        iterator = live_iterator(source)
        while _unfinished(iterator):
            if time.monotonic() >= until:
                return False
            time.sleep(_LOOK_S)
    return True


def _unfinished(iterator: Any) -> int:
    """Return how many batches the workers of an iterator have been asked for and not made."""
    tasks = getattr(iterator, "_task_info", None)
    if not tasks or getattr(iterator, "_shutdown", True):
        return 0
    asked = sum(1 for task in list(tasks.values()) if len(task) == 1)
    try:
        ready = iterator._worker_result_queue.qsize()
        if iterator._data_queue is not iterator._worker_result_queue:
            ready += iterator._data_queue.qsize()
    except (AttributeError, NotImplementedError, OSError):
        return 0  # the kernel does not count what lies in a queue, or torch keeps none
    return max(0, int(asked - ready))
