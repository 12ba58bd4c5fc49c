"""Optimizer steps: their time, and the ticks that end steps."""

from __future__ import annotations

import weakref
from _thread import get_ident
from time import thread_time_ns
from typing import Any

from hotlap.probe.ledger import BACKWARD, OPTIMIZER, OTHER, Ledger
from hotlap.probe.timeline import BY_OPTIMIZER, Timeline
from hotlap.sites.hub import Hub


class Optimizers:
    """Watches all optimizers of the process, told apart by the order of their first step.

    open: the tokens of the steps that have begun, by the id of their optimizer.
    """

    def __init__(self, ledger: Ledger, timeline: Timeline) -> None:
        self._ledger = ledger
        self._timeline = timeline
        self._ordinals: dict[int, tuple[int, weakref.ref[Any]]] = {}
        self._next = 0
        self.open: dict[int, int] = {}

    def attach(self, hub: Hub) -> None:
        """Subscribe to the optimizers' sites."""
        hub.subscribe("optimizer_step", self.step_begins, self.step_ended)
        hub.subscribe("optimizer_call", self.call_begins, self.call_ended)
        hub.subscribe("zero_grad", self.zero_begins, self.zero_ended)

    def call_begins(self, _optimizer: Any) -> int:
        """The script calls ``step``: until it returns, what is in no span is the optimizer's."""
        ledger = self._ledger
        if ledger.current != OTHER or ledger.depth or ledger.thread != get_ident():
            return 0
        ledger.rest_on(OPTIMIZER)
        return 1

    def call_ended(self, _token: int, _optimizer: Any) -> None:
        """It has returned, or raised."""
        if self._ledger.inside(OPTIMIZER):  # else a loop over data within has left its edge
            self._ledger.rest_on(OTHER)

    def step_begins(self, optimizer: Any) -> int:
        """An optimizer steps; one inside another one (a wrapper's inner) is part of it."""
        ledger = self._ledger
        if ledger.thread != get_ident():
            if self._timeline.rank >= BY_OPTIMIZER or ledger.depth:
                return 0
            # The first optimizer step tells which thread trains.
            ledger.settle()
            ledger.thread = get_ident()
        if ledger.depth:
            stale = self.open.pop(id(optimizer), 0)
            if stale:
                # Its last step raised: torch calls no hook then, so the span was left open. Or this
                # is its own ``super().step()``, and what came before stays the optimizer's.
                ledger.leave(stale)
            if ledger.depth and ledger.inside(OPTIMIZER):
                return 0
        token = self.open[id(optimizer)] = ledger.enter(OPTIMIZER)
        return token

    def step_ended(self, token: int, optimizer: Any) -> None:
        """It has stepped: a tick."""
        if not token:
            return
        self.open.pop(id(optimizer), None)
        # A system call, at which a busy kernel likes to take the core away: while the phase is
        # still open, so that the wait is booked where the user's line sees it.
        cpu_ns = thread_time_ns()
        ledger = self._ledger
        ledger.leave(token)
        if ledger.depth and ledger.inside(BACKWARD):
            # One optimizer per layer, stepping as soon as its gradient is there: the step ends
            # with the backward pass, not with each of them.
            self._timeline.stepped_inside = True
            return
        self._timeline.tick(BY_OPTIMIZER, self.ordinal(optimizer), cpu_ns)

    def zero_begins(self, _optimizer: Any) -> int:
        """Gradients are cleared: part of the optimizer's phase."""
        ledger = self._ledger
        if ledger.current != OTHER or ledger.thread != get_ident():
            return 0
        return ledger.enter(OPTIMIZER)

    def zero_ended(self, token: int, _optimizer: Any) -> None:
        """Gradients are cleared."""
        self._ledger.leave(token)

    def ordinal(self, optimizer: Any) -> int:
        """Return the number of an optimizer; the next one if it has not stepped before."""
        known = self._ordinals.get(id(optimizer))
        if known is not None and known[1]() is optimizer:
            return known[0]
        self._ordinals[id(optimizer)] = (self._next, weakref.ref(optimizer))
        self._next += 1
        return self._next - 1
