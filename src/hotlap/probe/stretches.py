"""Stretches of time that may turn out to be evaluation, and where training began again in them."""

from __future__ import annotations

from typing import Any

from hotlap.fast.choice import Tally
from hotlap.probe.ledger import WIDTH


class Split:
    """A moment inside a stretch at which training may have begun again."""

    __slots__ = ("accounts", "at_ns", "by_loader", "counts", "cpu_ns", "epochs", "fetched")

    def __init__(self, stretch: Stretch, at_ns: int, by_loader: bool) -> None:
        self.at_ns = at_ns
        self.accounts = stretch.accounts.copy()
        self.counts = stretch.counts.copy()
        self.fetched = len(stretch.fetched)
        self.by_loader = by_loader
        self.cpu_ns = 0
        self.epochs = stretch.epochs

    def epoch_begins(self, stretch: Stretch) -> bool:
        """Tell whether a loader gave its first batch after this moment of the stretch."""
        return stretch.epochs > self.epochs


class Stretch:
    """Time that may turn out to be evaluation.

    loader: the one whose iteration opened it. explicit: the script switched a training model to
    evaluation mode, so a fetch from the training loader does not end it. trailing: opened by a
    forward pass alone, so what follows the last such pass is not part of it.
    passes: forward passes without gradients; evals: with gradients, in evaluation mode;
    sloppy: with gradients, in training mode. epochs: first batches that loaders gave in it.
    until_ns: once it has ended, the instant up to which it was evaluation; 0 where it was none.
    last_split: the split that the latest pass with gradients in evaluation mode did away with; it
    counts if just that pass led to a backward pass.
    """

    __slots__ = (
        "accounts",
        "counts",
        "epochs",
        "evals",
        "explicit",
        "fetched",
        "last_split",
        "loader",
        "passes",
        "sloppy",
        "split",
        "trailing",
        "until_ns",
    )

    def __init__(self, loader: Any = None, explicit: bool = False, trailing: bool = False) -> None:
        self.loader = loader
        self.explicit = explicit
        self.trailing = trailing
        self.accounts = Tally(WIDTH)
        self.counts = Tally(3)
        self.fetched: list[Any] = []
        self.epochs = 0
        self.passes = 0
        self.evals = 0
        self.sloppy = 0
        self.split: Split | None = None
        self.last_split: Split | None = None
        self.until_ns: int | None = None

    def evaluated(self, trained: bool) -> bool:
        """Tell whether this was evaluation. trained: a backward pass ended it."""
        if not trained:
            return bool(self.passes or self.evals or self.sloppy)
        if self.loader is not None and self.loader in self.fetched[-1:] and not self.explicit:
            return False  # the loader that opened it fed the backward pass: it trains
        by_loader = self.split is not None and self.split.by_loader
        return bool(self.passes or (self.evals and by_loader))
