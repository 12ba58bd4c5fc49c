"""What rules about switches share: where the script sets one, and what a trial showed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hotlap.diagnose.costs import Cost
from hotlap.diagnose.shares import floor_of
from hotlap.values.facts import Facts, WhatIf
from hotlap.values.record import Place

RECOMPUTES = ("activation_checkpoint", "gradient_checkpointing")
"""Settings that drop activations to compute them again."""
GRADIENTS_OFF = ("no_grad", "inference_mode", "set_grad_enabled")
_FRAMEWORKS = ("lightning", "transformers", "accelerate", "ignite", "fastai")
_LEAST_GAIN = 0.05
_MOST_NOISE = 0.25


def truthy(value: Any) -> bool:
    """Tell whether a literal in the source switches something on."""
    return value not in (False, None, 0, "False", "0", "None")


def anything(value: Any) -> bool:  # noqa: ARG001 - the signature of a test of values
    """Take every value."""
    return True


def first_setting(
    facts: Facts, names: Sequence[str], wanted: Callable[[Any], bool] = anything
) -> Place | None:
    """Return where the user's code first sets one of ``names`` to a wanted value, or None."""
    return next(
        (one.place for one in facts.settings if one.name in names and wanted(one.value)), None
    )


def what_if(facts: Facts, change: str, value: Any = None) -> WhatIf | None:
    """Return the trial of one change that acted, or None. value: None for any."""
    found = [
        one
        for one in facts.what_ifs
        if one.change == change and one.acted and (value is None or one.value == value)
    ]
    return max(found, key=lambda one: one.ratio, default=None)


def faster(facts: Facts, tried: WhatIf) -> bool:
    """Tell whether a change made the steps faster for certain: above noise and worth the change.

    Trials are processes of their own: between them the machine drifts by more than the interval
    of one comparison tells, so the whole interval must lie above the floor.
    """
    return tried.low > 1.0 + max(_LEAST_GAIN, min(_MOST_NOISE, floor_of(facts)))


def evaluates_with_gradients(facts: Facts, costs: Sequence[Cost]) -> bool:
    """Tell whether evaluation records graphs, as far as the script's source tells.

    costs: of the evaluation; a framework in them switches gradients off for the script.
    """
    if not facts.settings or any(one.name in GRADIENTS_OFF for one in facts.settings):
        return False
    leaves = [leaf for one in costs for leaf, _ in one.leaves]
    return not any(name in leaf for leaf in leaves for name in _FRAMEWORKS)
