"""Forward and backward passes, changes of mode, compilation."""

from __future__ import annotations

import sys
from _thread import get_ident
from typing import Any

from hotlap.probe.ledger import BACKWARD, COMPILE, DATA_WAIT, FORWARD, Ledger
from hotlap.probe.timeline import BY_BACKWARD, Timeline, in_training
from hotlap.sites.hub import Hub


class Models:
    """Watches what the training thread does with models."""

    def __init__(self, ledger: Ledger, timeline: Timeline) -> None:
        self._ledger = ledger
        self._timeline = timeline
        self._grad_enabled = sys.modules["torch"].is_grad_enabled

    def attach(self, hub: Hub) -> None:
        """Subscribe to the models' sites."""
        hub.subscribe("module_call", self.forward_begins, self.forward_ended)
        hub.subscribe("module_mode", self.mode_changes)
        hub.subscribe("backward", self.backward_begins, self.backward_ended)
        hub.subscribe("compile", self.compile_begins, self.compile_ended)

    def forward_begins(self, module: Any) -> int:
        """An outermost forward pass begins; one inside backward is recomputation, part of it."""
        ledger = self._ledger
        timeline = self._timeline
        current = ledger.current
        if current in (BACKWARD, DATA_WAIT, COMPILE) or ledger.thread != get_ident():
            return 0
        grad = self._grad_enabled()
        plain = timeline.stretch is None and not timeline.at_edge and timeline.counts[0]
        if (
            grad
            and plain
            and id(module) in timeline.roots
            and in_training(module)
            and timeline.ticks
        ):
            timeline.totals[1] += 1
            timeline.counts[1] += 1
        else:
            timeline.forward(module, grad)
        return ledger.enter(FORWARD)

    def forward_ended(self, token: int, _module: Any) -> None:
        """It has returned."""
        self._ledger.leave(token)
        if self._timeline.stretch is not None:
            self._timeline.forward_ended()

    def mode_changes(self, subject: tuple[Any, bool]) -> int:
        """A model is switched to training or evaluation mode."""
        ledger = self._ledger
        if ledger.mine() and not ledger.depth:
            self._timeline.mode_changes(*subject)
        return 0

    def backward_begins(self, _: Any) -> int:
        """A backward pass begins; one inside another (double backward) is part of it.

        One inside compilation is the compiler's own, which traces a backward pass and runs none.
        """
        ledger = self._ledger
        timeline = self._timeline
        current = ledger.current
        if current in (BACKWARD, COMPILE) or ledger.thread != get_ident():
            return 0
        if timeline.stretch is not None or timeline.at_edge or timeline.fetched or timeline.pending:
            timeline.backward()
        else:
            timeline.totals[2] += 1
            timeline.counts[2] += 1
        return ledger.enter(BACKWARD)

    def backward_ended(self, token: int, _: Any) -> None:
        """It has returned."""
        if token:
            self._ledger.leave(token)
            timeline = self._timeline
            if timeline.rank <= BY_BACKWARD or timeline.stepped_inside:
                timeline.backward_ended()

    def compile_begins(self, _: Any) -> int:
        """Dynamo begins to compile."""
        ledger = self._ledger
        return ledger.enter(COMPILE) if ledger.mine() else 0

    def compile_ended(self, token: int, _: Any) -> None:
        """Dynamo has compiled."""
        self._ledger.leave(token)
