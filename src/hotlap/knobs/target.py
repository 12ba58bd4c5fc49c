"""What a knob works on inside the training process: patches that can be undone, and its proof."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from hotlap.sites.patches import Patches


class Target:
    """One knob in one process.

    name, value: the knob and what it is set to. patches: where its patches are kept until they
    are undone. evaluates: tells of a module that it is called for an evaluation of the script's,
    and not for training.
    """

    def __init__(
        self,
        name: str,
        value: Any,
        patches: Patches,
        evaluates: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        self.name = name
        self.value = value
        self.evaluates = evaluates
        self._patches = patches
        self._count = 0
        self._acted_in = 0
        self._words = ""
        self._notes: list[str] = []
        self._waiting: list[Callable[[], None]] = []
        self._adjusters: list[Callable[[Any], None]] = []

    def replace(self, owner: Any, name: str, value: Any) -> None:
        """Replace an attribute until the session ends."""
        self._patches.set("settings", owner, name, value)

    def undo_with(self, undo: Callable[[], None]) -> None:
        """Call ``undo`` when the session ends, for what is no attribute."""
        self._patches.later("settings", undo)

    def acted(self, words: str) -> None:
        """Say that the knob made a difference, and which."""
        self._count += 1
        self._words = words
        self._acted_in = os.getpid()

    def acted_here(self) -> bool:
        """Tell whether it was in this process, and not in the one that this was forked from."""
        return self._acted_in == os.getpid()

    def note(self, words: str) -> None:
        """Say what limits it."""
        if words not in self._notes:
            self._notes.append(words)

    def adjust_with(self, adjust: Callable[[Any], None]) -> None:
        """Call ``adjust`` with each object that the script had made before, of whatever type."""
        self._adjusters.append(adjust)

    def given(self, made: Any) -> None:
        """The script hands over an object that it made before."""
        for adjust in self._adjusters:
            adjust(made)

    def after_first_step(self, make: Callable[[], None]) -> None:
        """Wait with a part of it for the end of the first step."""
        self._waiting.append(make)

    def stepped(self) -> None:
        """The first step has ended."""
        for make in self._waiting:
            try:
                make()
            except Exception as error:
                self.note(f"it could not be made: {type(error).__name__}: {error}"[:300])
        self._waiting.clear()

    def proof(self) -> dict[str, Any]:
        """Return value, acted, times, and the proof in words."""
        words = "; ".join(filter(None, (self._words, *self._notes)))
        return {
            "value": self.value,
            "acted": self._count > 0,
            "times": self._count,
            "proof": words or "nothing that it could change was met",
        }
