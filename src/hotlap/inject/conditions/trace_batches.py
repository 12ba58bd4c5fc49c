"""What training loaders deliver, as hashes, epoch by epoch."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

from hotlap.inject.conditions import trace_digest as digest
from hotlap.values.trace import EpochTrace

_MOST: Final = 1 << 14
"""Batches that are looked at."""
_UNKNOWN: Final = 64
"""Batches of an epoch that are looked at while its loader is not known to train."""


@dataclass
class _Epoch:
    known: Any
    batches: list[str] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    complete: bool = False


class Delivered:
    """The batches of all loaders; which of them train is known only after the first step."""

    def __init__(self) -> None:
        self._order: list[tuple[_Epoch, str]] = []
        self._open: dict[int, _Epoch] = {}

    def begun(self, known: Any) -> None:
        """A loader is iterated anew: the batches that follow are of another epoch."""
        self._open.pop(known.ordinal, None)

    def exhausted(self, known: Any) -> None:
        """A loader has no more batches in this epoch."""
        epoch = self._open.pop(known.ordinal, None)
        if epoch is not None:
            epoch.complete = True

    def delivered(self, known: Any, batch: Any, stepped: bool) -> None:
        """Take in a batch. stepped: a step has ended, so that most loaders that train are known.

        A loader that is made anew for each epoch is known to train only after its first batches.
        """
        epoch = self._open.get(known.ordinal)
        if epoch is None:
            epoch = self._open[known.ordinal] = _Epoch(known)
        is_another = stepped and not known.trains and len(epoch.batches) >= _UNKNOWN
        if is_another or len(self._order) >= _MOST:
            return
        found = digest.batch_hash(batch)
        epoch.batches.append(found)
        epoch.rows += digest.row_hashes(batch)
        self._order.append((epoch, found))

    def told(self) -> tuple[tuple[str, ...], tuple[EpochTrace, ...]]:
        """Return the batches of the loaders that train, in order, and their epochs."""
        order = [(epoch, found) for epoch, found in self._order if epoch.known.trains]
        firsts: dict[int, tuple[int, _Epoch]] = {}
        for index, (epoch, _) in enumerate(order):
            firsts.setdefault(id(epoch), (index, epoch))
        return (
            tuple(found for _, found in order),
            tuple(_told(index, epoch) for index, epoch in firsts.values()),
        )


def _told(first: int, epoch: _Epoch) -> EpochTrace:
    rows = None
    if epoch.rows:
        rows = hashlib.blake2b(b"".join(sorted(epoch.rows)), digest_size=8).hexdigest()
    return EpochTrace(
        loader=epoch.known.ordinal,
        first=first,
        batches=len(epoch.batches),
        complete=epoch.complete,
        rows=len(epoch.rows),
        distinct=len(set(epoch.rows)),
        rows_hash=rows,
    )
