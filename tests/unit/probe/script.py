"""A training script played by hand: what it does, and how long each thing takes.

The watchers of the probe are told what the sites would tell them; a clock turned by hand gives
every call an exact duration, so the accounts can be compared digit by digit.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch  # noqa: F401 - the watchers look it up among the imported modules

from hotlap.probe.journal import Journal
from hotlap.probe.ledger import Ledger
from hotlap.probe.loaders import KnownLoader, Loaders
from hotlap.probe.models import Models
from hotlap.probe.optimizers import Optimizers
from hotlap.probe.places import Places
from hotlap.probe.timeline import BY_HAND, Timeline
from hotlap.probe.touches import Touches
from hotlap.runs.recording import Recording
from hotlap.values.phase import ACCOUNTS, RULES
from unit.probe.clock import Clock

Spent = dict[str, int]


class Net:
    """A model, as far as the watchers look at one."""

    def __init__(self, *parts: Net, training: bool = True) -> None:
        self.parts = parts
        self.training = training

    def modules(self) -> Iterator[Net]:
        """Yield this module and those inside it."""
        yield self
        for part in self.parts:
            yield from part.modules()


class Optimizer:
    """An optimizer: nothing but itself."""


class Data:
    """A data set."""

    def __getitem__(self, index: int) -> int:
        return index


class Loader:
    """A DataLoader, as far as the watchers look at one."""

    batch_sampler = None
    num_workers = 0
    pin_memory = False
    prefetch_factor = None
    persistent_workers = False

    def __init__(self, script: Script, batch_size: int = 4) -> None:
        self.dataset = Data()
        self.batch_size = batch_size
        self.script = script
        script.loaders.created(None, self)

    def __len__(self) -> int:
        return 10

    def __iter__(self) -> Iteration:
        return self.open()

    def open(self, ns: int = 0) -> Iteration:
        """Begin an iteration, which takes ``ns``."""
        subject: list[Any] = [self, None]
        token = self.script.loaders.iter_begins(subject)
        self.script.clock.pass_ns(ns)
        subject[1] = Iteration(self.script)
        self.script.loaders.iter_ended(token, subject)
        iteration: Iteration = subject[1]
        return iteration

    @property
    def role(self) -> str:
        """Tell what the watchers take it for."""
        known: KnownLoader = self.script.loaders._of(self)
        return str(known.to_dict()["role"])


class Iteration:
    """The iterator of a loader."""

    def __init__(self, script: Script) -> None:
        self.script = script

    def batch(self, ns: int = 0) -> None:
        """Wait ``ns`` for a batch."""
        token = self.script.loaders.batch_begins(self)
        self.script.clock.pass_ns(ns)
        if token:
            self.script.loaders.batch_ended(token, self)

    def exhausted(self, ns: int = 0) -> None:
        """Ask for a batch where there is none, and wait ``ns`` to hear it."""
        token = self.script.loaders.batch_begins(self)
        self.script.clock.pass_ns(ns)
        self.script.loaders.exhausted(self)
        if token:
            self.script.loaders.batch_ended(token, self)

    def batches(self, count: int, ns: int = 0) -> Iterator[int]:
        """Yield so often after a wait of ``ns``, then find the data exhausted."""
        for index in range(count):
            self.batch(ns)
            yield index
        self.exhausted(ns)


class Told(Journal):
    """A journal that keeps what the timeline tells, instead of writing it."""

    def __init__(self) -> None:
        super().__init__(Recording(Path("/nowhere/self.rec"), "process"))
        self.raw: list[Any] = []
        self.first: tuple[int, tuple[int, ...]] | None = None

    def first_step(self, at_ns: int, accounts: list[int], cpu_ns: int) -> None:
        """Keep where the first step began."""
        super().first_step(at_ns, accounts, cpu_ns)
        self.first = (at_ns, tuple(accounts))

    def tick(self, raw: Any) -> None:
        """Keep a tick."""
        self.raw.append(raw)


class Script:
    """The script: its calls take the nanoseconds that they are given."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.clock = Clock().install(patch)
        self.begun = self.clock.now
        self.grad = True
        self.ledger = Ledger()
        self.journal = Told()
        self.timeline = Timeline(self.ledger, self.journal)
        places = Places("/nowhere")
        self.loaders = Loaders(self.ledger, self.timeline, self.journal, places)
        self.models = Models(self.ledger, self.timeline)
        self.models._grad_enabled = lambda: self.grad
        self.optimizers = Optimizers(self.ledger, self.timeline)
        self.touches = Touches(self.ledger, self.journal, places)
        self.after: Spent | None = None

    # -- what a script does ------------------------------------------------------------------------

    def host(self, ns: int) -> None:
        """Let the script do something of its own."""
        self.clock.pass_ns(ns)

    def loader(self, batch_size: int = 4) -> Loader:
        """Make a DataLoader."""
        return Loader(self, batch_size)

    def forward(self, net: Net, ns: int = 0) -> None:
        """Call a model."""
        token = self.models.forward_begins(net)
        self.clock.pass_ns(ns)
        if token:
            self.models.forward_ended(token, net)

    def backward(self, ns: int = 0, inside: Callable[[], None] | None = None) -> None:
        """Run a backward pass; ``inside`` happens in the middle of it."""
        token = self.models.backward_begins(None)
        self.clock.pass_ns(ns)
        if inside is not None:
            inside()
        self.models.backward_ended(token, None)

    def step(
        self, optimizer: Optimizer, ns: int = 0, closure: Callable[[], None] | None = None
    ) -> None:
        """Let an optimizer step, with what its closure does inside."""
        token = self.optimizers.step_begins(optimizer)
        if closure is not None:
            closure()
        self.clock.pass_ns(ns)
        self.optimizers.step_ended(token, optimizer)

    def zero_grad(self, ns: int = 0) -> None:
        """Clear the gradients."""
        token = self.optimizers.zero_begins(None)
        self.clock.pass_ns(ns)
        if token:
            self.optimizers.zero_ended(token, None)

    def mode(self, net: Net, training: bool) -> None:
        """Call ``net.train()`` or ``net.eval()``."""
        self.models.mode_changes((net, training))
        for one in net.modules():
            one.training = training

    @contextmanager
    def no_grad(self) -> Iterator[None]:
        """Be inside ``torch.no_grad()``."""
        before, self.grad = self.grad, False
        try:
            yield
        finally:
            self.grad = before

    def save(self, ns: int) -> None:
        """Write a checkpoint."""
        token = self.touches.save_begins(None)
        self.clock.pass_ns(ns)
        self.touches.save_ended(token, None)

    def mark(self) -> None:
        """Call ``hotlap.step()``."""
        self.timeline.tick(BY_HAND)

    def train(
        self, net: Net, optimizer: Optimizer, batch: Callable[[], None] | None = None
    ) -> None:
        """Do one plain step: forward 30, backward 50, optimizer 8 + 1, host 2."""
        if batch is not None:
            batch()
        self.forward(net, 30)
        self.host(2)
        self.backward(50)
        self.step(optimizer, 8)
        self.zero_grad(1)

    def end(self) -> None:
        """Come to the end of the script; all the time must have been accounted for."""
        self.after = _named(self.timeline.since_last_tick())
        booked = sum(self.timeline.main)
        assert booked == self.clock.now - self.begun
        told = [self.before, *self.ticks, self.after]
        if self.journal.raw:
            assert sum(sum(one.values()) for one in told if one) == booked

    # -- what was made of it -----------------------------------------------------------------------

    @property
    def before(self) -> Spent:
        """Return the accounts before the first step."""
        first = self.journal.first
        return {} if first is None else _named(first[1])

    @property
    def ticks(self) -> list[Spent]:
        """Return the accounts of each tick, without those that are zero."""
        first = self.journal.first
        books = [first[1] if first else (), *(raw[3] for raw in self.journal.raw)]
        return [
            _named([b - a for a, b in zip(before, after, strict=True)])
            for before, after in itertools.pairwise(books)
        ]

    @property
    def rules(self) -> list[str]:
        """Return what ended each tick."""
        return [RULES[raw[1]] for raw in self.journal.raw]

    @property
    def counts(self) -> list[list[int]]:
        """Return batches, forward and backward passes of each tick."""
        return [raw[4] for raw in self.journal.raw]

    @property
    def evaluation(self) -> int:
        """Return all that was booked as evaluation."""
        return self.timeline.main[ACCOUNTS.index("evaluation")]


def _named(accounts: Any) -> Spent:
    return {name: ns for name, ns in zip(ACCOUNTS, accounts, strict=True) if ns}
