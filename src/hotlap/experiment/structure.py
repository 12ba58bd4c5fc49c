"""What two recorded trainings have exactly in common, and in words where they first part."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hotlap.values.trace import EpochTrace, ParameterTrace, TrainingTrace

Found = tuple[str, bool | None, str]
"""Name of a check, whether it passed (None: not made), and what was seen."""
Said = tuple[bool | None, str]

_MORE_TWICE: Final = 0.02
"""Share of the rows of an epoch that may come twice beyond what comes twice without a change."""
_CUT: Final = "the recording was cut short by time"


def structure(base: TrainingTrace, other: TrainingTrace, any_order: bool) -> dict[str, Said]:
    """Compare two trainings exactly; by name of the check, whether it passed, and what was seen.

    any_order: batches may hold other samples; only how many there are is compared.
    """
    checks: dict[str, Callable[[TrainingTrace, TrainingTrace], Said]] = {
        "batches": _batches,
        "epochs": _epochs_in_any_order if any_order else _epochs,
        "hyperparameters": _hyperparameters,
        "rates": _rates,
        "passes": _passes,
        "length": _length,
        "losses": _losses,
        "gradients": _gradients,
        "moved": _moved,
        "values": _values,
        "state": _state,
        "buffers": _buffers,
        "counters": _counters,
        "generators": _generators,
    }
    return {name: check(base, other) for name, check in checks.items()}


def same(one: float, other: float) -> bool:
    """Tell whether two numbers are the same; what is no number is the same as itself."""
    return one == other or (math.isnan(one) and math.isnan(other))


def number(value: float) -> str:
    """Show a number as shortly as tells it apart from its neighbours in a float32."""
    return f"{value:.7g}"


def _told(one: float, other: float) -> str:
    """Show a number that became another one, with as many digits as tell them apart."""
    first, second = number(one), number(other)
    if first == second:
        first, second = repr(one), repr(other)
    return f"{first} became {second}"


def are_at_one_step(base: TrainingTrace, other: TrainingTrace) -> bool:
    """Tell whether both recordings end after the same number of steps."""
    return base.steps_ended == other.steps_ended


def _pairs(one: Sequence[Any], other: Sequence[Any]) -> list[tuple[Any, Any]]:
    return list(zip(one, other, strict=False))


def _batches(base: TrainingTrace, other: TrainingTrace) -> Said:
    pairs = _pairs(base.batches, other.batches)
    if not pairs:
        if base.batches and other.steps_ended:
            return False, "no batch of a data loader was delivered any more"
        return None, "no data loader delivered batches to the training"
    for at, (one, two) in enumerate(pairs, 1):
        if one == two:
            continue
        if sorted(base.batches) == sorted(other.batches):
            return False, f"batch {at} is another one: the same batches came in another order"
        if _samples_are_same(base.epochs, other.epochs):
            return False, f"batch {at} holds other samples: the same ones came in another order"
        return False, f"batch {at} has other contents"
    return True, f"{len(pairs)} batches have the same contents, in the same order"


def _samples_are_same(one: Sequence[EpochTrace], other: Sequence[EpochTrace]) -> bool:
    """Tell whether the first epochs are whole, and hold the same samples."""
    pairs = [(a, b) for a, b in _pairs(one, other) if a.complete and b.complete]
    return (
        bool(pairs) and all(a.rows_hash == b.rows_hash for a, b in pairs) and pairs[0][0].rows > 0
    )


def _epochs(base: TrainingTrace, other: TrainingTrace) -> Said:
    pairs = _pairs(base.epochs, other.epochs)
    if not pairs:
        return None, "no epoch of a data loader was seen"
    whole = 0
    for at, (one, two) in enumerate(pairs, 1):
        if (wrong := _length_of(at, one, two)) is not None:
            return False, wrong
        whole += one.complete and two.complete
    if not whole:
        return None, "no epoch went to its end within the recorded steps"
    return True, f"{whole} whole epochs have as many batches"


def _length_of(at: int, one: EpochTrace, two: EpochTrace) -> str | None:
    """Say in words what is wrong with the number of batches of an epoch."""
    if one.complete and (two.complete or two.batches > one.batches):
        if two.batches != one.batches:
            return f"epoch {at}: {one.batches} batches became {two.batches}"
    elif two.complete and one.batches > two.batches:
        return f"epoch {at}: {one.batches} batches or more became {two.batches}"
    return None


def _epochs_in_any_order(base: TrainingTrace, other: TrainingTrace) -> Said:
    passed, says = _epochs(base, other)
    if passed is False:
        return passed, says
    for at, (one, two) in enumerate(_pairs(base.epochs, other.epochs), 1):
        if not one.rows or not two.rows:
            continue
        allowed = (one.rows - one.distinct) / one.rows + _MORE_TWICE
        twice = two.rows - two.distinct
        if twice > allowed * two.rows + 1:
            return False, f"epoch {at}: {twice} of {two.rows} samples came more than once"
    return passed, says


def _hyperparameters(base: TrainingTrace, other: TrainingTrace) -> Said:
    if not base.steps:
        return None, "no step of an optimizer was seen"
    for at, (one, two) in enumerate(_pairs(base.steps, other.steps), 1):
        before = base.hyperparameters[one.hyperparameters]
        after = other.hyperparameters[two.hyperparameters]
        if before != after:
            return False, f"step {at}: {_changed(json.loads(before), json.loads(after))}"
    return True, "those of all groups are the same in all steps"


def _changed(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> str:
    if len(before) != len(after):
        return f"{len(before)} groups of parameters became {len(after)}"
    for group, (one, two) in enumerate(_pairs(before, after)):
        for name in sorted({*one, *two}):
            if one.get(name) != two.get(name):
                where = f" of group {group}" if len(before) > 1 else ""
                said = name.replace("_", " ")
                return f"{said}{where} {_shown(one, name)} became {_shown(two, name)}"
    return "the hyperparameters are others"


def _shown(group: Mapping[str, Any], name: str) -> str:
    return str(group[name]) if name in group else "(unset)"


def _rates(base: TrainingTrace, other: TrainingTrace) -> Said:
    if not base.steps:
        return None, "no step of an optimizer was seen"
    for at, (one, two) in enumerate(_pairs(base.steps, other.steps), 1):
        for before, after in _pairs(one.lr, two.lr):
            if not same(before, after):
                return False, f"step {at}: learning rate {_told(before, after)}"
    return True, "they are the same in all steps"


def _passes(base: TrainingTrace, other: TrainingTrace) -> Said:
    pairs = _pairs(base.steps, other.steps)
    if not pairs:
        if base.steps:
            return False, "no optimizer stepped any more"
        return None, "no step of an optimizer was seen"
    for at, (one, two) in enumerate(pairs, 1):
        if one.optimizer != two.optimizer:
            return False, f"step {at}: another optimizer stepped"
        if one.backwards != two.backwards:
            return False, (
                f"step {at}: it came after {two.backwards} backward passes, not {one.backwards}"
            )
    return True, f"{len(pairs)} optimizer steps came after as many backward passes"


def _length(base: TrainingTrace, other: TrainingTrace) -> Said:
    if "seconds" in (base.ended, other.ended):
        return None, _CUT
    if not are_at_one_step(base, other):
        return False, (
            f"the training ended after {other.steps_ended} steps, "
            f"where the unchanged one had {base.steps_ended}"
        )
    if len(base.steps) != len(other.steps):
        return False, (
            f"optimizers stepped {len(other.steps)} times in {other.steps_ended} steps, "
            f"not {len(base.steps)} times"
        )
    return True, f"both were recorded over {base.steps_ended} steps"


def _losses(base: TrainingTrace, other: TrainingTrace) -> Said:
    pairs = _pairs(base.losses, other.losses)
    if not pairs:
        if base.losses:
            return False, "no backward pass was made any more"
        return None, "no backward pass was seen"
    for at, (one, two) in enumerate(pairs, 1):
        if not same(one, two):
            return False, f"backward pass {at}: loss {_told(one, two)}"
    return True, f"{len(pairs)} losses are equal to the last bit"


def _gradients(base: TrainingTrace, other: TrainingTrace) -> Said:
    pairs = _pairs(base.gradients, other.gradients)
    if not pairs:
        return None, "no gradients lay ready at the first step"
    for one, two in pairs:
        if len(one.norms) != len(two.norms):
            return False, f"gradients of {len(one.norms)} parameters became {len(two.norms)}"
        for at, (before, after) in enumerate(_pairs(one.norms, two.norms)):
            if before is None or after is None:
                if before is not after:
                    what = "has no gradient any more" if after is None else "has a gradient now"
                    return False, f"first step: parameter {at} {what}"
            elif not same(before, after):
                return False, f"first step: gradient norm of parameter {at} {_told(before, after)}"
        if one.sketch != two.sketch:
            return False, "first step: the gradients are others"
    return True, "they are equal to the last bit"


def _parameters(
    base: TrainingTrace, other: TrainingTrace, differ: Callable[[Any, Any], str | None]
) -> Said:
    if not base.parameters:
        return None, "no parameters of an optimizer are known"
    if not are_at_one_step(base, other):
        return None, f"{_CUT}: {base.steps_ended} and {other.steps_ended} steps"
    mine = {(one.optimizer, one.index): one for one in other.parameters}
    if len(mine) != len(base.parameters):
        return False, f"{len(base.parameters)} trained parameters became {len(mine)}"
    for one in base.parameters:
        two = mine.get((one.optimizer, one.index))
        wrong = "is missing" if two is None else differ(one, two)
        if wrong is not None:
            shape = "x".join(map(str, one.shape)) or "one number"
            return False, f"parameter {one.index} ({shape}) {wrong}"
    return True, ""


def _moved(base: TrainingTrace, other: TrainingTrace) -> Said:
    def differ(one: ParameterTrace, two: ParameterTrace) -> str | None:
        if one.shape != two.shape:
            return f"has another shape: {two.shape}"
        if one.dtype != two.dtype:
            return f"is {two.dtype}, not {one.dtype}"
        if one.moved and not two.moved:
            return "is not trained any more: its values stayed as they were"
        if two.moved and not one.moved:
            return "is trained, and was not before"
        return None

    passed, says = _parameters(base, other, differ)
    moved = sum(one.moved for one in base.parameters)
    return passed, says or f"the same {moved} of {len(base.parameters)} parameters have moved"


def _values(base: TrainingTrace, other: TrainingTrace) -> Said:
    def differ(one: ParameterTrace, two: ParameterTrace) -> str | None:
        if same(one.total, two.total) and same(one.norm, two.norm):
            return None
        return f"has other values at the end: norm {_told(one.norm, two.norm)}"

    passed, says = _parameters(base, other, differ)
    return passed, says or f"sums and norms of {len(base.parameters)} parameters are equal"


def _state(base: TrainingTrace, other: TrainingTrace) -> Said:
    if base.state_keys is None or other.state_keys is None:
        return None, "no model is known"
    if base.state_keys != other.state_keys:
        return False, "the model has other parameters or buffers: names or shapes differ"
    return True, "names and shapes of parameters and buffers are the same"


def _buffers(base: TrainingTrace, other: TrainingTrace) -> Said:
    return _sums(base, other, lambda _: True)


def _counters(base: TrainingTrace, other: TrainingTrace) -> Said:
    """Whole numbers that a model counts up: they hold how often it was called for training."""
    return _sums(base, other, lambda name: name.endswith("num_batches_tracked"))


def _sums(base: TrainingTrace, other: TrainingTrace, takes: Callable[[str], bool]) -> Said:
    stages = [("after 3 steps", base.buffers_early, other.buffers_early)]
    if are_at_one_step(base, other):
        stages.append(("at the end", base.buffers, other.buffers))
    seen = 0
    for when, before, after in stages:
        for name in filter(takes, before.keys() & after.keys()):
            seen += 1
            if not same(before[name], after[name]):
                short = name.split(".", 1)[-1]
                return False, f"{when}: {short} {_told(before[name], after[name])}"
    if not seen:
        return None, "the model holds none"
    return True, "their sums are equal after 3 steps and at the end"


def _generators(base: TrainingTrace, other: TrainingTrace) -> Said:
    stages = [("after the first step", base.rng_first, other.rng_first)]
    if are_at_one_step(base, other):
        stages.append(("at the end", base.rng, other.rng))
    seen = 0
    for when, before, after in stages:
        for name in sorted(before.keys() & after.keys()):
            seen += 1
            if before[name] != after[name]:
                return False, f"{when}: the generator of {name} is in another state"
    if not seen:
        return None, "none was looked at"
    return True, "they are in the same state after the first step and at the end"
