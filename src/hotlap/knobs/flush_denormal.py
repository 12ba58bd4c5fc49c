"""# flush_denormal: numbers too small for full precision become zero

**What.** A processor needs many times longer for a multiplication with a *denormal* number, one
below 1e-38 in float32. Weights, states and gradients that decay towards zero (silence in audio,
saturated units) are full of them. With this switch the processor takes them for zero.

**Where it helps.** Trainings on the processor, where the diagnosis has tried it, or could not rule
it out.

**What else it changes.** Results below 1e-38, in the training thread and in those that it starts.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from hotlap.knobs.offers import is_settled, judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import is_cpu, share_of

NAME: Final = "flush_denormal"
PHASE: Final = "forward"
NUMERICS: Final = ("rounding",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it for trainings on the processor that do not have it."""
    if not is_cpu(case.facts):
        return No("the model does not run on the processor")
    if is_settled(case.facts, ("flush_denormal",), True):
        return No("the script has set it already")
    because = "denormal numbers were not ruled out"
    share = share_of(case.facts, "forward", "backward", "optimizer")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Set the processor's flag before the first step."""
    torch = sys.modules["torch"]
    if torch.set_flush_denormal(bool(value)):
        target.undo_with(lambda: torch.set_flush_denormal(False))
        target.acted("set before the first step")
    else:
        target.note("this processor has no such switch")


def snippet(value: Any) -> str:
    """Return the line to paste."""
    return f"torch.set_flush_denormal({bool(value)})"
