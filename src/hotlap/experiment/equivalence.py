"""Whether two trainings are the same, from what each did in its first steps.

What is compared depends on the class of numerics that the change may have. What differs between
two runs of the unchanged command cannot be held against the changed one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hotlap.experiment.curves import Curves
from hotlap.experiment.structure import Found, structure
from hotlap.values.trace import TrainingTrace
from hotlap.values.tuning import Check, Sameness

CLASSES: Final = ("identical", "rounding", "reduced", "resampled")
"""Classes of numerics, the strongest change last."""

_TOLERANT: Final = (
    "hyperparameters",
    "rates",
    "passes",
    "length",
    "state",
    "counters",
    "moved",
    "batches",
    "epochs",
)
"""Checks that hold for all classes but one: causes come before what follows from them."""
_IDENTICAL: Final = (*_TOLERANT, "losses", "gradients", "values", "buffers", "generators")
_RESAMPLED: Final = tuple(name for name in _TOLERANT if name != "batches")
_TITLES: Final = {
    "batches": "the batches",
    "epochs": "the epochs",
    "hyperparameters": "hyperparameters",
    "rates": "learning rates",
    "passes": "steps and backward passes",
    "length": "the number of steps",
    "losses": "the losses",
    "gradients": "the first gradients",
    "moved": "which parameters are trained",
    "values": "the parameters at the end",
    "state": "what the model holds",
    "buffers": "the model's buffers",
    "counters": "counters in the model",
    "generators": "the random generators",
}


@dataclass(frozen=True)
class _Judged:
    """A check. blurred: two unchanged runs differ there too, so that nothing can be told."""

    check: Check
    blurred: bool = False


def sameness(
    base: Sequence[TrainingTrace],
    tuned: TrainingTrace,
    numerics: str,
    perturbed: TrainingTrace | None = None,
    reseeded: TrainingTrace | None = None,
) -> Sameness:
    """Return whether a training is the same as that of the unchanged command.

    base: one or two runs of the unchanged command. numerics: of ``CLASSES``. perturbed: one with
    slightly other parameters, the yardstick where rounding may differ. reseeded: one with another
    seed, the yardstick where random draws may. Raises ValueError for an unknown class, and where
    ``base`` is empty.
    """
    if numerics not in CLASSES:
        raise ValueError(f"{numerics!r} is no class of numerics")
    if not base:
        raise ValueError("there is no run of the unchanged command")
    if not base[0].steps_ended:
        return Sameness("unknown, because no step of the unchanged training was recorded")
    if not tuned.steps_ended:
        return Sameness("unknown, because no step of the changed training was recorded")
    names = {"identical": _IDENTICAL, "resampled": _RESAMPLED}.get(numerics, _TOLERANT)
    judged = _held_against(base, tuned, names, numerics == "resampled")
    curves = Curves(base, tuned, perturbed, reseeded)
    more: dict[str, Callable[[], list[Found]]] = {
        "identical": curves.identical,
        "rounding": curves.rounding,
        "reduced": curves.reduced,
        "resampled": curves.resampled,
    }
    blurred = {one.check.name for one in judged if one.blurred}
    if numerics != "identical" or blurred:
        judged += [_Judged(Check(*one)) for one in more[numerics]()]
    return Sameness(_word(judged, numerics, base[0], tuned), tuple(one.check for one in judged))


def _held_against(
    base: Sequence[TrainingTrace], tuned: TrainingTrace, names: Sequence[str], any_order: bool
) -> list[_Judged]:
    """Make the exact checks."""
    found = structure(base[0], tuned, any_order)
    again = structure(base[0], base[1], any_order) if len(base) > 1 else {}
    judged = []
    for name in names:
        passed, says = found[name]
        title = _TITLES[name]
        if passed is False and again.get(name, (True, ""))[0] is False:
            says = f"two runs of the unchanged command differ there too: {again[name][1]}"
            judged.append(_Judged(Check(title, None, says), blurred=True))
        else:
            judged.append(_Judged(Check(title, passed, says)))
    return judged


def _word(
    judged: Sequence[_Judged], numerics: str, base: TrainingTrace, tuned: TrainingTrace
) -> str:
    failed = next((one.check for one in judged if one.check.passed is False), None)
    if failed is not None:
        return f"differs: {failed.says}"
    seen = [one for one in judged if one.check.passed]
    if not any(one.check.name in _TELLING for one in seen):
        return "unknown, because too little of the training was seen to compare it"
    steps = min(base.steps_ended, tuned.steps_ended)
    complete = tuned.ended != "seconds" and base.ended != "seconds"
    exact = any(one.check.name == _TITLES["losses"] for one in seen)
    if numerics == "identical" and exact and complete and not any(one.blurred for one in judged):
        return "identical"
    return f"not distinguishable in {steps} steps"


_TELLING: Final[Any] = frozenset(
    (_TITLES["losses"], _TITLES["moved"], "the first loss", "the mean loss", "the loss curve")
)
