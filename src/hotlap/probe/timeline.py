"""What the accounts are cut by: steps, the first step, and stretches of evaluation.

A *tick* ends a step (or, with several optimizers, a part of a cycle). A *stretch* begins where
evaluation may begin; its time is kept in accounts of its own and booked as evaluation when
forward passes that do not train were seen in it, and as ordinary time otherwise.
See docs/concepts/steps.md for the rules and their reasons.
"""

from __future__ import annotations

import weakref
from time import thread_time_ns
from typing import Any, Final

from hotlap.fast.choice import Standing, Tally
from hotlap.probe.journal import Journal
from hotlap.probe.ledger import (
    CHECKPOINT,
    COMPILE,
    EPOCH_EDGE,
    EVALUATION,
    OTHER,
    WIDTH,
    Ledger,
)
from hotlap.probe.stretches import Split, Stretch
from hotlap.values.phase import RULES

BY_BACKWARD, BY_LOADER, BY_OPTIMIZER, BY_HAND = (
    RULES.index(rule) for rule in ("backward", "loader", "optimizer", "explicit")
)

_past_its_lookup: Final = object.__getattribute__
_KEPT_APART: Final = (CHECKPOINT, COMPILE)


class Timeline(Standing):
    """The training thread's story, told by watchers in the order in which things happen."""

    def __init__(self, ledger: Ledger, journal: Journal) -> None:
        super().__init__()
        self.ledger = ledger
        self.journal = journal
        self.kept = journal.kept
        self.main = ledger.accounts
        self.stretch: Stretch | None
        self.roots: dict[int, weakref.ref[Any]]
        self._mark: tuple[int, list[int]] | None = None
        self._mark_forwards = False
        self._trains_in_eval: set[int] = set()
        self._helpers: dict[int, int] = {}
        self._cpu_ns, self._cpu_thread = 0, self.ledger.thread

    # -- loaders ---------------------------------------------------------------------------

    def loader_opens(self, loader: Any) -> None:
        """A loader begins an iteration; one that is not known to train may evaluate."""
        if loader.trains:
            self._training_loader_used()
        elif self.stretch is None:
            self._open(Stretch(loader))
        elif loader is not self.stretch.loader and not loader.evaluates:
            self._may_train(self.stretch)
        if self.ticks == 0 and self.counts[2] == 0 and not loader.trains:
            self._mark = None

    def loader_made(self) -> None:
        """The script makes a loader: an evaluation before it has ended, unless it goes on."""
        if self.stretch is not None and self.stretch.passes:
            self._may_train(self.stretch)

    def data_exhausted(self, loader: Any) -> None:
        """A training loader has no more batches: what follows is the edge of the epoch."""
        if loader is None or not loader.trains:
            return
        # Also at the end of an evaluation over the training data: what follows is no step.
        if self.stretch is None or self.stretch.explicit:
            self.at_edge = True
            self.ledger.rest_on(EPOCH_EDGE)

    def _leave_edge(self) -> None:
        self.at_edge = False
        self.ledger.rest_on(OTHER)

    def batch_asked(self, loader: Any) -> None:
        """The loop asks for a batch; loader is None when its iterator was not seen to begin."""
        if self.at_edge and loader is not None and loader.trains:
            self._leave_edge()
        if loader is not None:
            if loader.trains:
                self._training_loader_used()
                if self.rank <= BY_LOADER and self.counts[2]:
                    self.tick(BY_LOADER)
            elif self.stretch is None:
                self._open(Stretch(loader))
        if self.ticks == 0 and not self.counts[2] and (self._mark is None or self._mark_forwards):
            self._set_mark(by_forward=False)

    def batch_given(self, loader: Any, epoch_first: bool) -> None:
        """A batch has arrived."""
        stretch = self.stretch
        (self.counts if stretch is None else stretch.counts)[0] += 1
        if loader is not None:
            fetched = self.fetched if stretch is None else stretch.fetched
            if not loader.trains and loader not in fetched[-8:]:
                fetched.append(loader)
            if epoch_first and stretch is None:
                self.epoch_first = True
            elif epoch_first and stretch is not None:
                stretch.epochs += 1

    def _training_loader_used(self) -> None:
        stretch = self.stretch
        if stretch is None:
            return
        if stretch.explicit:
            self._may_train(stretch)
        else:
            self._close(trained=False)

    # -- models ----------------------------------------------------------------------------

    def mode_changes(self, module: Any, training: bool) -> None:
        """The script switches a model between training and evaluation mode."""
        stretch = self.stretch
        if training:
            if stretch is not None and (stretch.passes or stretch.evals):
                self._close(trained=False)
        elif stretch is None:
            if self._holds_root(module):
                self._open(Stretch(explicit=True))
        elif not stretch.explicit and self._holds_root(module):
            stretch.explicit = True
            stretch.trailing = False

    def forward(self, module: Any, grad: bool) -> None:
        """The outermost forward pass of a model begins."""
        key = id(module)
        trains = grad and (in_training(module) or key in self._trains_in_eval)
        stretch = self.stretch
        if self.at_edge and trains:
            self._leave_edge()
        if not self.counts[0] and not self.counts[1] and stretch is None and self.ticks:
            # Only where no loader gave a batch: there it says where batches may come from.
            self.ledger.settle()
            self.journal.before_forward_ns += self.main[OTHER] - self.base[OTHER]
        if stretch is not None and stretch.trailing and trains:
            self._close(trained=True)
            stretch = None
        if stretch is not None:
            self._forward_in_stretch(stretch, grad, trains)
        elif (
            not (grad or self.counts[0] or self.counts[1])
            and not in_training(module)
            and not self._helps(key)
        ):
            stretch = Stretch(trailing=True)
            self._open(stretch)
            stretch.passes = 1
        self.totals[1] += 1
        (self.counts if stretch is None else stretch.counts)[1] += 1
        if grad and (key not in self.roots or not trains) and len(self.pending) < 256:
            self.pending.append(weakref.ref(module))
        if grad and self.ticks == 0 and self._mark is None:
            self._set_mark(by_forward=True)

    def _forward_in_stretch(self, stretch: Stretch, grad: bool, trains: bool) -> None:
        if trains:
            stretch.sloppy += 1
            if stretch.split is None:
                self._split(stretch, by_loader=False)
        elif grad:
            stretch.evals += 1
            if stretch.explicit:
                stretch.last_split = stretch.split or stretch.last_split
                stretch.split = None
        else:
            stretch.passes += 1
            stretch.split = stretch.last_split = None

    def _helps(self, key: int) -> bool:
        """Tell whether a model that would open a stretch did so a tick ago, as a teacher does."""
        before = self._helpers.get(key, -2)
        self._helpers[key] = self.ticks
        return 0 < self.ticks <= before + 1

    def forward_ended(self) -> None:
        """The outermost forward pass has returned."""
        stretch = self.stretch
        if stretch is not None and stretch.trailing:
            self._split(stretch, by_loader=False)

    def _holds_root(self, module: Any) -> bool:
        roots = self.roots
        return bool(roots) and any(id(one) in roots for one in module.modules())

    # -- training --------------------------------------------------------------------------

    def backward(self) -> None:
        """A backward pass begins: what led here was training."""
        if self.at_edge:
            self._leave_edge()
        self._close(trained=True)
        self.totals[2] += 1
        self.counts[2] += 1
        for loader in self.fetched:
            if not loader.trains:
                self.journal.loader_trains(loader)
        self.fetched.clear()
        for reference in self.pending:
            module = reference()
            if module is not None:
                self._learn_root(module)
        self.pending.clear()

    def backward_ended(self) -> None:
        """A backward pass has returned; it ends a step if optimizers stepped inside it.

        So it does where there is neither a loader nor an optimizer.
        """
        if self.stepped_inside:
            self.stepped_inside = False
            self.tick(BY_OPTIMIZER)
        elif self.rank <= BY_BACKWARD and not self.counts[0]:
            self.tick(BY_BACKWARD)

    def _learn_root(self, module: Any) -> None:
        key = id(module)
        roots = self.roots
        if key not in roots:
            roots[key] = weakref.ref(module, lambda _: self._forget(key))
        if not in_training(module):
            self._trains_in_eval.add(key)

    def _forget(self, key: int) -> None:
        self.roots.pop(key, None)
        self._trains_in_eval.discard(key)
        self._helpers.pop(key, None)

    def tick(self, rank: int, optimizer: int = -1, cpu_ns: int | None = None) -> None:
        """End a step, unless a higher rule has been seen.

        rank: index into ``RULES``. cpu_ns: the thread's CPU time, if it was read just now.
        """
        if rank < self.rank:
            return
        self.rank = rank
        if self.stretch is not None:
            self._close(trained=True)
        if cpu_ns is None:
            cpu_ns = thread_time_ns()
        now = self.ledger.settle()
        if self.ticks == 0:
            at, accounts = self._mark or (now, list(self.main))
            if self._mark is None or self._cpu_thread != self.ledger.thread:
                self._cpu_ns = cpu_ns  # a thread's clock says nothing about another
            self.journal.first_step(at, accounts, self._cpu_ns)
        self.base = self.main.copy()
        self.ticks += 1
        so_far, counts = tuple(self.base), list(self.counts)
        self.journal.tick((now, rank, optimizer, so_far, counts, cpu_ns, self.epoch_first))
        self.counts = Tally(3)
        self.epoch_first = False

    def trains_in_evaluation(self, module: Any) -> bool:
        """Tell whether a model has been trained while it was in evaluation mode."""
        return id(module) in self._trains_in_eval

    def may_have_begun(self) -> bool:
        """Tell whether the first step may have begun, as far as is known before its end."""
        return self._mark is not None

    def since_last_tick(self) -> list[int]:
        """Return the accounts since the last tick; an open stretch is closed.

        After the last epoch no other follows: what looked like its edge is the end of the run.
        """
        self._close(trained=False)
        self.ledger.settle()
        since = [a - b for a, b in zip(self.main, self.base, strict=True)]
        since[OTHER] += since[EPOCH_EDGE]
        since[EPOCH_EDGE] = 0
        return since

    # -- stretches -------------------------------------------------------------------------

    def _set_mark(self, by_forward: bool) -> None:
        now = self.ledger.settle()
        stretch = self.stretch
        accounts = list(self.main)
        if stretch is not None:
            accounts = [a + b for a, b in zip(accounts, stretch.accounts, strict=True)]
            stretch.counts = Tally(3)
            if stretch.split is not None:
                stretch.split.counts = Tally(3)
        self.counts = Tally(3)
        self._mark = (now, accounts)
        self._mark_forwards = by_forward
        self._cpu_ns, self._cpu_thread = thread_time_ns(), self.ledger.thread

    def _open(self, stretch: Stretch) -> None:
        self.ledger.settle()
        self.ledger.accounts = stretch.accounts
        self.stretch = stretch

    def _may_train(self, stretch: Stretch) -> None:
        """Note that training may begin again here, if it has not done so earlier."""
        if stretch.split is None:
            self._split(stretch, by_loader=True)

    def _split(self, stretch: Stretch, by_loader: bool) -> None:
        stretch.split = Split(stretch, self.ledger.settle(), by_loader)
        if self.ticks == 0:
            stretch.split.cpu_ns = thread_time_ns()

    def _close(self, trained: bool) -> None:
        """End the open stretch and book its time. trained: a backward pass ends it."""
        stretch = self.stretch
        if stretch is None:
            return
        now = self.ledger.settle()
        self.ledger.accounts = self.main
        self.stretch = None
        if not stretch.evaluated(trained):
            stretch.until_ns = 0
            self._book(stretch.accounts, Tally(WIDTH))
            self._count(stretch.counts, Tally(3))
            self.fetched.extend(stretch.fetched)
            self.epoch_first = self.epoch_first or stretch.epochs > 0
            return
        # Where nothing says that training began again inside, all of it was evaluation.
        split = stretch.split or (stretch.last_split if trained else None)
        if split is None or not (stretch.passes or stretch.evals):
            split = Split(stretch, now, by_loader=False)
        elif split.epoch_begins(stretch):
            self.epoch_first = True
        stretch.until_ns = split.at_ns
        self._book_evaluation(split.accounts)
        if self.ticks == 0:
            self._mark = (split.at_ns, list(self.main)) if split.at_ns != now else None
            self._cpu_ns = split.cpu_ns
            self._mark_forwards = False
        self._book(stretch.accounts, split.accounts)
        self._count(stretch.counts, split.counts)
        self.fetched.extend(stretch.fetched[split.fetched :])
        for loader in stretch.fetched[: split.fetched]:
            loader.evaluates = True

    def _book_evaluation(self, accounts: Tally) -> None:
        for index, value in enumerate(accounts):
            self.main[index if index in _KEPT_APART else EVALUATION] += value

    def _book(self, accounts: Tally, without: Tally) -> None:
        for index in range(WIDTH):
            self.main[index] += accounts[index] - without[index]

    def _count(self, counts: Tally, without: Tally) -> None:
        for index in range(3):
            self.counts[index] += counts[index] - without[index]


def in_training(module: Any) -> bool:
    """Tell whether a module is in training mode. Cost: 0.2 us."""
    # Past its own lookup, whose code the script does not expect to run here. A module that never
    # ran nn.Module.__init__ lacks the attribute; a scripted one has it elsewhere.
    try:
        return bool(_past_its_lookup(module, "__dict__")["training"])
    except (AttributeError, KeyError):
        return bool(getattr(module, "training", True))
