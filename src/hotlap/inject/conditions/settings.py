"""What a trial changes: knobs, and conditions that are no optimisation but show what a thing costs.

Each is applied before the script's own code can run, and says with ``acted`` each time that it made
a difference: a change that made none proves nothing, and the report must be able to tell.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Mapping
from typing import Any, Final

from hotlap.inject.conditions.reseeding import perturb, seed
from hotlap.knobs import catalogue
from hotlap.knobs.target import Target
from hotlap.probe.recorder import Recorder
from hotlap.runs import frames
from hotlap.sites.patches import Patches


def stdout(target: Target) -> None:
    """Drop what the training process prints."""
    target.replace(sys, "stdout", _Nowhere(target, sys.stdout))


class _Nowhere:
    """A text stream that takes everything and writes nothing."""

    def __init__(self, target: Target, own: Any) -> None:
        self._target = target
        self._own = own
        self.encoding = getattr(own, "encoding", "utf-8")
        self.errors = getattr(own, "errors", "strict")
        self.buffer = getattr(own, "buffer", None)

    def write(self, text: str) -> int:
        """Take a text."""
        self._target.acted("texts were dropped")
        return len(text)

    def writelines(self, lines: Any) -> None:
        """Take several."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing."""

    def isatty(self) -> bool:
        """Say what the real one says: progress bars ask."""
        return bool(self._own.isatty())

    def fileno(self) -> int:
        """Return the real one's descriptor."""
        return int(self._own.fileno())

    def writable(self) -> bool:
        """Say so."""
        return True

    def readable(self) -> bool:
        """Say that it is not."""
        return False


def saves(target: Target) -> None:
    """Pass over ``torch.save``."""
    torch = sys.modules["torch"]
    own = torch.save

    @functools.wraps(own)
    def save(*_args: Any, **_kwargs: Any) -> None:
        target.acted("calls of torch.save were passed over")

    target.replace(torch, "save", save)
    target.replace(torch.serialization, "save", save)


def default_dtype(target: Target) -> None:
    """Keep the default type of new tensors (``float32``), whatever the script sets."""
    torch = sys.modules["torch"]
    own = torch.set_default_dtype
    wanted = getattr(torch, str(target.value))

    @functools.wraps(own)
    def set_default_dtype(d: Any) -> None:
        if d != wanted:
            target.acted(f"{d} was asked for, {wanted} is used")
        own(wanted)

    target.replace(torch, "set_default_dtype", set_default_dtype)
    own(wanted)


CONDITIONS: Final[dict[str, Callable[[Target], None]]] = {
    "default_dtype": default_dtype,
    "perturb": perturb,
    "saves": saves,
    "seed": seed,
    "stdout": stdout,
}
"""What a trial may change beside knobs, by the name in ``TrialPlan.settings``."""


class Changes:
    """The changes in one process, and the proof that they acted.

    asked: name and value of each: of ``CONDITIONS``, or a knob's. evaluates: as ``Target`` has it.
    """

    def __init__(
        self,
        patches: Patches,
        asked: Mapping[str, Any],
        evaluates: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        self._targets = [
            Target(name, asked[name], patches, evaluates) for name in sorted(asked, key=_position)
        ]

    def apply(self) -> None:
        """Make all changes; one that fails says so and leaves the others alone."""
        for target in self._targets:
            try:
                if target.name in CONDITIONS:
                    CONDITIONS[target.name](target)
                elif target.name in catalogue.KNOBS:
                    catalogue.load(target.name).apply(target, target.value)
                else:
                    target.note(f"this hotlap knows no change {target.name!r}")
            except Exception as error:
                target.note(f"it could not be made: {type(error).__name__}: {error}"[:300])

    def given(self, made: Any) -> None:
        """Change what the script had made before; what fails says so."""
        for target in reversed(self._targets):  # as for what is made: see knobs.catalogue
            try:
                target.given(made)
            except Exception as error:
                words = f"{type(made).__name__} could not be changed: {type(error).__name__}"
                target.note(f"{words}: {error}"[:300])

    def first_step_ended(self) -> None:
        """Make what waits for the end of the first step."""
        for target in self._targets:
            target.stepped()

    def proofs(self, *, only_here: bool = False) -> dict[str, dict[str, Any]]:
        """Return the proof of each by name. only_here: of those that acted in this process."""
        kept = [one for one in self._targets if not only_here or one.acted_here()]
        return {one.name: one.proof() for one in kept}


class Settings(Changes):
    """Changes that are known before the script begins: a trial's, or those of a plan."""

    def __init__(self, recorder: Recorder, patches: Patches, asked: Mapping[str, Any]) -> None:
        super().__init__(patches, asked, self._evaluates)
        self._recorder = recorder
        self._written: dict[str, Any] = {}
        self._pid = os.getpid()

    def stepped(self) -> None:
        """Make what waited for the first step, which has ended, and write the proofs."""
        self.first_step_ended()
        self.write()

    def write(self) -> None:
        """Write the proofs, if they have changed; in a worker into its own file."""
        # There only what acted: the training process says the rest.
        proofs = self.proofs(only_here=os.getpid() != self._pid)
        if proofs and proofs != self._written:
            self._written = proofs
            self._recorder.add(frames.encode_json("sett", proofs))

    def _evaluates(self, module: Any) -> bool:
        """Tell whether a model is called for an evaluation, and was never trained in that mode."""
        timeline = self._recorder.timeline
        stretch = timeline.stretch
        if stretch is None or not stretch.explicit or getattr(module, "training", True):
            return False
        return not timeline.trains_in_evaluation(module)


def _position(name: str) -> int:
    """Return where in the order of knobs a change is made; conditions come first."""
    return catalogue.KNOBS.index(name) if name in catalogue.KNOBS else -1
