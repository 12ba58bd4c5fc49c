"""What the training loaders deliver: how many batches and samples, and the last batches kept.

Kept batches are what a replay gives out again. They are references, as long as the script leaves
its batches as they are, else clones.
"""

from __future__ import annotations

import contextlib
import sys
import weakref
from collections import deque
from typing import Any, Final

from hotlap.inject.conditions import batches, contents

MOST_BATCHES: Final = 64
MOST_BYTES: Final = 512 << 20
MOST_TENSORS: Final = 256
"""Each tensor that a worker made may hold a file descriptor of the training process."""
REPLAYED: Final = "_hotlap_replayed"
"""The attribute in which an iterator has how many batches were given in place of its own."""
LOADER: Final = "_hotlap_source"
"""The attribute in which an iterator has what gives its loader."""
ENOUGH: Final = 8
"""So many batches are kept of a loader whose batches are all of one shape."""
_REMEMBERED: Final = 16
"""Steps after which what came earlier is forgotten."""
_LOOKED_AT: Final = 32
"""Padded tensors that are measured."""


class Kept:
    """One batch as it was delivered. safe: it shares no memory with what the script was given."""

    __slots__ = ("batch", "bytes", "safe", "samples", "shape", "tensors", "versions")

    def __init__(self, batch: Any, shape: tuple[Any, ...], samples: int | None, safe: bool) -> None:
        self.versions = batches.versions(batch)
        self.batch = batches.copied(batch, batches.clone if safe else _same)
        self.shape = shape
        self.samples = samples
        self.safe = safe
        self.bytes = batches.size_bytes(batch)
        self.tensors = len(self.versions)

    def copy(self) -> Any:
        """Return the batch anew, for a script to use as it likes."""
        return batches.copied(self.batch, batches.clone if self.safe else _same)


class Source:
    """One training loader: what came from it, and what is kept of that."""

    def __init__(self, known: Any) -> None:
        self.known = known
        self.loader: weakref.ref[Any] | None = None
        self.iterator: weakref.ref[Any] | None = None
        self.batches = 0
        self.samples: int | None = 0
        self.kept: list[Kept] = []
        self.in_place = False
        self.unkeepable: str | None = None
        self.expected: int | None = known.facts["batch_size"]
        self.seen_length: int | None = None
        self._unchecked: list[Kept] = []
        self._asked = False
        self._told: int | None = None

    def began(self, loader: Any, iterator: Any) -> None:
        """Remember which loader and which iterator the batches come from."""
        self.loader = weakref.ref(loader)
        self.iterator = weakref.ref(iterator)

    def exhausted(self, iterator: Any) -> None:
        """Remember how many batches an epoch had that has ended.

        One that is cut short ends too; no window that asks for the length comes after it.
        """
        replayed = iterator.__dict__.get(REPLAYED, 0)
        given = getattr(iterator, "_num_yielded", 0)
        if not replayed and isinstance(given, int) and given:
            self.seen_length = given

    def count(self, samples: int | None) -> None:
        """Count a batch that the script was given."""
        self.batches += 1
        known = self.samples is not None and samples is not None
        self.samples = (self.samples or 0) + (samples or 0) if known else None

    def keep(self, batch: Any, samples: int | None) -> None:
        """Keep a batch for a replay, if it adds to what is kept."""
        shape = batches.signature(batch)
        one_shape = all(kept.shape == shape for kept in self.kept)
        if one_shape and len(self.kept) >= ENOUGH:
            return
        kept = Kept(batch, shape, samples, self.in_place)
        self.kept.append(kept)
        if not kept.safe:
            self._unchecked.append(kept)
        while len(self.kept) > 2 and self._too_much():
            self._drop()

    def try_keep(self, batch: Any, samples: int | None) -> None:
        """Keep it if that can be done; a batch may be anything, and refuse anything."""
        if self.unkeepable is not None:
            return
        try:
            self.keep(batch, samples)
        except Exception as error:
            self.kept.clear()
            self.unkeepable = f"{type(error).__name__}: {error}"[:200]

    def _too_much(self) -> bool:
        return (
            len(self.kept) > MOST_BATCHES
            or sum(kept.bytes for kept in self.kept) > MOST_BYTES
            or sum(kept.tensors for kept in self.kept) > MOST_TENSORS
        )

    def _drop(self) -> None:
        """Drop the oldest batch of a shape that another one has too, else the oldest."""
        shapes = [kept.shape for kept in self.kept]
        twice = (at for at, shape in enumerate(shapes) if shapes.count(shape) > 1)
        del self.kept[next(twice, 0)]

    def check(self) -> None:
        """At the end of a step: see whether the script has changed a batch that is kept."""
        for kept in self._unchecked:
            if batches.versions(kept.batch) != kept.versions:
                self.in_place = True
        self._unchecked.clear()
        if self.in_place:
            self.kept = [kept for kept in self.kept if kept.safe]

    def length(self) -> int | None:
        """Return the batches of an epoch: as its parts say, or as an epoch was seen to have."""
        if self.seen_length is not None:
            return self.seen_length
        if not self._asked:
            self._asked = True
            self._told = self.known.facts["length"]
            loader = self.loader() if self.loader is not None else None
            if self._told is None and loader is not None and not is_iterable(loader):
                with contextlib.suppress(Exception):  # a sampler of the script's may not know it
                    self._told = len(loader)
        return self._told

    def queued(self) -> int:
        """Return how many batches may lie ready: made before they are asked for."""
        loader = self.loader() if self.loader is not None else None
        workers = getattr(loader, "num_workers", 0)
        return workers * (getattr(loader, "prefetch_factor", None) or 2) if workers else 0


class Deliveries:
    """All training loaders of the process, by their ordinal."""

    def __init__(self) -> None:
        self.sources: dict[int, Source] = {}
        self._early: deque[tuple[Any, Any, int | None]] = deque(maxlen=8)
        self.keeping = False
        self.rows: list[tuple[float, float, float]] = []
        """Width, longest and mean row of padded batches; see ``contents.padded_rows``."""
        self._arrays: dict[str, Any] = {}
        self._epoch: int | None = None

    def of(self, known: Any) -> Source:
        """Return the source of a known loader, the same one each time."""
        source = self.sources.get(known.ordinal)
        if source is None:
            source = self.sources[known.ordinal] = Source(known)
        return source

    def delivered(self, iterator: Any, batch: Any, stepped: bool) -> None:
        """Count a batch of a training loader, and keep it where a replay is to come.

        stepped: a step has ended before. Until then no loader is known to train.
        """
        known = known_of(iterator)
        if known is None:
            return
        if known.trains:
            source = self._tied(known, iterator)
            size = batches.samples(batch, source.expected)
            source.count(size)
            if len(self.rows) < _LOOKED_AT:
                self.rows += contents.padded_rows(batch)
            if self.keeping:
                source.try_keep(batch, size)
        elif not stepped:
            size = batches.samples(batch, known.facts["batch_size"])
            self._early.append((known, iterator, size))

    def facts(self) -> dict[str, Any]:
        """Return what is known by now of what is delivered, by the names of
        ``values.facts.Facts.defaults``."""
        loaders = (one.loader() for one in self.sources.values() if one.loader is not None)
        datasets = [getattr(one, "dataset", None) for one in loaders]
        # At the end of the process they are gone: what was seen before stays.
        self._arrays = contents.scattered_arrays(datasets) or self._arrays
        epoch = {} if self._epoch is None else {"epoch_batches": self._epoch}
        return {**contents.padding(self.rows), **self._arrays, **epoch}

    def ask_length(self) -> None:
        """Learn how many batches an epoch of the loader has that gave most.

        Once nothing more is trained: a length of the script's own may draw the batches anew.
        """
        most = max(self.sources.values(), key=lambda one: one.batches, default=None)
        self._epoch = most.length() if most is not None else None

    def first_step_ended(self) -> None:
        """Count the batches of the loaders that turned out to train."""
        for known, iterator, size in self._early:
            if known.trains:
                self._tied(known, iterator).count(size)
        self._early.clear()

    def _tied(self, known: Any, iterator: Any) -> Source:
        source = self.of(known)
        if source.iterator is None or source.iterator() is not iterator:
            loader = iterator.__dict__.get(LOADER, _nothing)()
            if loader is not None:
                source.began(loader, iterator)
        return source

    def step_ended(self) -> None:
        """Look after what the script did to its batches."""
        for source in self.sources.values():
            source.check()

    def totals(self) -> dict[int, tuple[int, int | None]]:
        """Return batches and samples so far, by loader."""
        return {key: (one.batches, one.samples) for key, one in self.sources.items()}

    def since(self, before: dict[int, tuple[int, int | None]]) -> tuple[int, int | None]:
        """Return batches and samples of all loaders since ``totals`` gave this."""
        count, samples = 0, 0
        known = True
        for key, one in self.sources.items():
            batches_before, samples_before = before.get(key, (0, 0))
            count += one.batches - batches_before
            if one.batches == batches_before:
                continue
            if one.samples is None or samples_before is None:
                known = False
            else:
                samples += one.samples - samples_before
        return count, samples if known else None

    def active(self, before: dict[int, tuple[int, int | None]]) -> list[Source]:
        """Return the loaders that have delivered since ``totals`` gave this."""
        return [
            one
            for key, one in sorted(self.sources.items())
            if one.batches > before.get(key, (0, 0))[0]
        ]

    def forget(self) -> None:
        """Let go of all batches that are kept."""
        self.keeping = False
        for source in self.sources.values():
            source.kept.clear()


class Feeding:
    """Which loaders have fed the latest 16 to 32 steps, and by how much. used: these."""

    def __init__(self, deliveries: Deliveries) -> None:
        self.used: list[Source] = []
        self._deliveries = deliveries
        self._totals: dict[int, tuple[int, int | None]] = {}
        self._older: dict[int, tuple[int, int | None]] = {}

    def learn(self, steps: int) -> None:
        """Look at what came in, at the end of a step. steps: how many have ended."""
        self.used = self._deliveries.active(self._older) or self.used
        if steps % _REMEMBERED == 0:
            self._older, self._totals = self._totals, self._deliveries.totals()

    def weights(self, used: list[Source]) -> list[int]:
        """Return how many batches came from each lately, at least one."""
        before = {key: batches for key, (batches, _) in self._older.items()}
        return [max(1, one.batches - before.get(one.known.ordinal, 0)) for one in used]


def _nothing() -> None:
    return None


def _same(tensor: Any) -> Any:
    return tensor


def known_of(iterator: Any) -> Any:
    """Return what the probe knows of an iterator's loader; None where it knows nothing."""
    return getattr(iterator, "__dict__", {}).get("_hotlap_loader")


def is_iterable(loader: Any) -> bool:
    """Tell whether a loader reads a stream."""
    return isinstance(loader.dataset, sys.modules["torch"].utils.data.IterableDataset)
