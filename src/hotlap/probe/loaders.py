"""DataLoaders seen from the training thread: the wait for a batch, the edges of an epoch."""

from __future__ import annotations

import sys
import weakref
from _thread import get_ident
from collections import deque
from typing import Any

from hotlap.fast.choice import Feed, Ledger
from hotlap.probe.journal import Journal
from hotlap.probe.ledger import BACKWARD, DATA_WAIT, EPOCH_EDGE
from hotlap.probe.places import Places
from hotlap.probe.timeline import BY_LOADER, Timeline
from hotlap.runs import frames
from hotlap.sites.hub import Hub

_SEEDS_KEPT = 64
_WRITTEN = 50


class KnownLoader(Feed):
    """What we know of one DataLoader. trains: its batches led to a backward pass."""

    __slots__ = ("base_seeds", "facts", "ordinal", "place")

    def __init__(self, ordinal: int, loader: Any, place: dict[str, Any] | None) -> None:
        super().__init__()
        self.ordinal = ordinal
        self.place = place
        self.base_seeds: list[int] = []
        self.facts = _facts(loader)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, the names of ``values.record.Loader``."""
        role = "training" if self.trains else "evaluation" if self.evaluates else "unknown"
        return {
            "ordinal": self.ordinal,
            "place": self.place,
            "role": role,
            "base_seeds": self.base_seeds,
            **self.facts,
        }


def _facts(loader: Any) -> dict[str, Any]:
    dataset = loader.dataset
    iterable = isinstance(dataset, sys.modules["torch"].utils.data.IterableDataset)
    batch_size = loader.batch_size
    if batch_size is None:
        batch_size = getattr(loader.batch_sampler, "batch_size", None)
    return {
        "dataset": type(dataset).__name__,
        "batch_size": batch_size if isinstance(batch_size, int) else None,
        "workers": loader.num_workers,
        "length": _length(loader),
        "iterable": iterable,
        "pin_memory": bool(loader.pin_memory),
        "prefetch": loader.prefetch_factor,
        "persistent": bool(loader.persistent_workers),
    }


def _length(loader: Any) -> int | None:
    """Return the batches of an epoch where asking runs no code of the user's, else None.

    A ``__len__`` of theirs may be costly, print, or draw the batches once more and with that
    change the order of the samples.
    """
    samplers = "torch.utils.data.sampler"
    asked = (type(getattr(loader, name, None)) for name in ("sampler", "batch_sampler"))
    if any(one is not type(None) and one.__module__ != samplers for one in asked):
        return None
    data = sys.modules["torch"].utils.data
    own = getattr(type(loader), "__len__", None) is data.DataLoader.__len__
    if own and type(loader.dataset) in (list, tuple, range, data.TensorDataset):
        return len(loader)
    return None


class Loaders:
    """Watches creation, iteration and waits of all loaders of the process."""

    def __init__(
        self, ledger: Ledger, timeline: Timeline, journal: Journal, places: Places
    ) -> None:
        self._ledger = ledger
        self._timeline = timeline
        self._journal = journal
        self._places = places
        # By identity: a loader of the user's own class may be equal to another, or not hashable.
        self._known: dict[int, tuple[weakref.ref[Any], KnownLoader]] = {}
        self._latest: deque[KnownLoader] = deque(maxlen=_WRITTEN)
        self._next = 0
        self._announced = False
        journal.status.append(self._write)

    @property
    def current(self) -> KnownLoader | None:
        """The loader whose batch the training thread waits for."""
        loading: KnownLoader | None = self._ledger.loading
        return loading

    @current.setter
    def current(self, known: KnownLoader | None) -> None:
        self._ledger.loading = known

    def attach(self, hub: Hub) -> None:
        """Subscribe to the loaders' sites."""
        hub.subscribe("loader_created", end=self.created)
        hub.subscribe("loader_iter", self.iter_begins, self.iter_ended)
        hub.subscribe("batch", self.batch_begins, self.batch_ended)
        hub.subscribe("exhausted", self.exhausted)

    def created(self, _token: Any, loader: Any) -> None:
        """Remember where a loader was made, unless its constructor has raised."""
        if not getattr(loader, "_DataLoader__initialized", True):
            return
        self._learn(loader, self._places.to_dict(self._places.find(sys._getframe(2))))
        if self._ledger.mine():
            self._timeline.loader_made()

    def iter_begins(self, subject: list[Any]) -> int:
        """An epoch (or an evaluation) over a loader begins: workers may have to start."""
        ledger = self._ledger
        if not ledger.mine() or ledger.current in (DATA_WAIT, BACKWARD):
            return 0
        known = self._of(subject[0])
        if known.facts["workers"] and not self._announced:
            # Workers look for the folder of the process that started them.
            self._announced = True
            self._journal.recording.flush()
        self._timeline.loader_opens(known)
        return ledger.enter(EPOCH_EDGE)

    def iter_ended(self, token: int, subject: list[Any]) -> None:
        """The iterator is there: tie it to its loader."""
        self._ledger.leave(token)
        loader, iterator = subject
        if iterator is None:
            return
        known = self._of(loader)
        known.fresh = True
        if hasattr(iterator, "__dict__"):  # a loader of the user's may give an iterator of theirs
            iterator.__dict__["_hotlap_loader"] = known
        seed = getattr(iterator, "_base_seed", None)
        if isinstance(seed, int) and seed not in known.base_seeds[-1:]:
            known.base_seeds.append(seed)
            del known.base_seeds[:-_SEEDS_KEPT]

    def batch_begins(self, iterator: Any) -> int:
        """The loop waits for a batch. Cost with ``batch_ended``: 1 us."""
        ledger = self._ledger
        if ledger.current in (DATA_WAIT, BACKWARD) or ledger.thread != get_ident():
            return 0
        known = ledger.loading = iterator.__dict__.get("_hotlap_loader")
        timeline = self._timeline
        plain = timeline.stretch is None and not timeline.at_edge and timeline.rank > BY_LOADER
        if not (plain and known is not None and known.trains):
            timeline.batch_asked(known)
        token = ledger.enter(DATA_WAIT)
        ledger.waited_before = ledger.accounts[DATA_WAIT]
        return token

    def batch_ended(self, token: int, iterator: Any) -> None:
        """The batch is there, or the data is exhausted."""
        ledger = self._ledger
        ledger.leave(token)
        ledger.loading = None
        if ledger.waited_before < 0:
            return
        known: KnownLoader | None = iterator.__dict__.get("_hotlap_loader")
        timeline = self._timeline
        if known is not None and known.trains and not known.fresh and timeline.stretch is None:
            timeline.counts[0] += 1
            return
        fresh = known is not None and known.fresh
        if known is not None:
            known.fresh = False
        timeline.batch_given(known, fresh)

    def exhausted(self, _iterator: Any) -> int:
        """The last call of an epoch gives no batch: its time belongs to the epoch's edge."""
        ledger = self._ledger
        if ledger.mine() and ledger.current == DATA_WAIT:
            ledger.settle()
            ledger.move(ledger.accounts[DATA_WAIT] - ledger.waited_before, EPOCH_EDGE)
            ledger.waited_before = -1
            self._timeline.data_exhausted(ledger.loading)
        return 0

    def after_fork(self) -> None:
        """In a forked child: the loaders stay known, their roles and this file's are new."""
        self._announced = False
        for _, known in self._known.values():
            known.trains = known.evaluates = known.fresh = False
        self._journal.status.append(self._write)

    def known(self, loader: Any) -> KnownLoader | None:
        """Return what is known of a loader; None of one that was not seen."""
        held = self._known.get(id(loader))
        return None if held is None else held[1]

    def _of(self, loader: Any) -> KnownLoader:
        known = self._known.get(id(loader))
        return known[1] if known is not None else self._learn(loader, None)

    def _learn(self, loader: Any, place: dict[str, Any] | None) -> KnownLoader:
        known = KnownLoader(self._next, loader, place)
        self._next += 1
        key, forget = id(loader), self._known.pop
        self._known[key] = (weakref.ref(loader, lambda _: forget(key, None)), known)
        self._latest.append(known)
        return known

    def _write(self) -> None:
        for known in self._latest:
            self._journal.recording.add(frames.encode_json("load", known.to_dict()))
