"""# evaluation_without_grad: evaluation records no graphs

**What.** Outermost calls of models run under `torch.no_grad()` while the script evaluates: a model
in evaluation mode, outside of training, that was never trained in that mode.

**Where it helps.** Scripts that evaluate and nowhere switch gradients off.

**What else it changes.** Outputs of an evaluation have no graph, so no backward pass can go through
them.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from hotlap.knobs.offers import best_trial, judged, named_by, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "evaluation_without_grad"
PHASE: Final = "evaluation"
NUMERICS: Final = ("identical",)
environment = no_variables
_SETTINGS: Final = ("no_grad", "inference_mode", "set_grad_enabled")


def applies(case: Case) -> Offer | No:
    """Offer it where the script evaluates and nowhere switches gradients off."""
    known = named_by(case, NAME) or best_trial(case.facts, NAME)
    if known is None and not case.facts.settings:
        return No("whether the script evaluates with gradients is not known")
    if known is None and any(one.name in _SETTINGS for one in case.facts.settings):
        return No("gradients are switched off somewhere in the script")
    because = "the script evaluates, and nowhere switches gradients off"
    share = share_of(case.facts, "evaluation")
    # A forward pass stays: what goes is the recording, at most about half.
    half = None if share is None else 0.5 * share
    return judged(case, NAME, half, Offer((True,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Evaluate without recording for gradients: outermost calls of models while they evaluate."""
    torch = sys.modules["torch"]
    own = torch.nn.Module.__call__
    is_compiling = torch.compiler.is_compiling
    is_grad_enabled, no_grad = torch.is_grad_enabled, torch.no_grad

    @functools.wraps(own)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not is_grad_enabled() or not target.evaluates(self):
            return own(self, *args, **kwargs)
        target.acted("a forward pass in evaluation ran without")
        with no_grad():
            return own(self, *args, **kwargs)

    if value:
        target.replace(torch.nn.Module, "__call__", call)


def snippet(_value: Any) -> str:
    """Return the lines around the script's own evaluation."""
    return "with torch.inference_mode():\n    ...  # the evaluation"
