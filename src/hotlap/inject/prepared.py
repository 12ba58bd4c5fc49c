"""A plan's knobs in a process that hotlap did not start: put on from inside, and taken off."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any, Final

from hotlap.inject import session as sessions
from hotlap.inject.conditions.settings import Changes
from hotlap.sites.patches import Patches

_FROM_THE_START: Final = ("allocator", "cuda_allocator")
"""Knobs that act by variables alone, which a process reads when it starts."""

_prepared: Prepared | None = None


class Prepared:
    """Knobs that are on in this process, for all that is made from now on and all that is given.

    settings: value by knob. environment: the variables that each knob should have had at start-up.
    """

    def __init__(
        self, settings: Mapping[str, Any], environment: Mapping[str, Mapping[str, str]]
    ) -> None:
        self.settings = dict(settings)
        self._environment = environment
        self._patches = Patches()
        self._changes = Changes(self._patches, settings)
        self._changes.apply()
        self._await_first_step()

    def give(self, objects: Iterable[Any]) -> None:
        """Change loaders and optimizers that were made before."""
        for one in objects:
            self._changes.given(one)

    def proofs(self) -> dict[str, dict[str, Any]]:
        """Return by knob: value, whether it acted so far, how often, and the proof in words."""
        return self._changes.proofs()

    def too_late(self) -> dict[str, dict[str, str]]:
        """Return the variables of knobs that only the start of the process could have put on."""
        proofs = self.proofs()
        return {
            knob: dict(variables)
            for knob, variables in self._environment.items()
            if knob in _FROM_THE_START and not proofs[knob]["acted"]
        }

    def undo(self) -> None:
        """Undo every change, newest first."""
        self._patches.undo()

    def _await_first_step(self) -> None:
        optimizers = sys.modules["torch.optim.optimizer"]
        register = optimizers.register_optimizer_step_post_hook

        def stepped(*_: Any) -> None:
            hook.remove()
            self._changes.first_step_ended()

        hook = register(stepped)
        self._patches.later("settings", hook.remove)


def is_settled_outside() -> bool:
    """Tell whether hotlap started this process with a plan, or for a trial: then that counts."""
    session = sessions.current()
    return session is not None and (session.conditions is not None or session.knobs is not None)


def put_on(settings: Mapping[str, Any], environment: Mapping[str, Mapping[str, str]]) -> Prepared:
    """Put knobs on; those that are on already are kept where they are the same, else undone."""
    global _prepared
    if _prepared is not None and _prepared.settings != dict(settings):
        take_off()
    if _prepared is None:
        _prepared = Prepared(settings, environment)
    return _prepared


def take_off() -> None:
    """Undo what ``put_on`` did; nothing where it did nothing."""
    global _prepared
    if _prepared is not None:
        _prepared.undo()
        _prepared = None
