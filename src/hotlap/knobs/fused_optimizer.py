"""# fused_optimizer: one kernel updates all parameters

**What.** `fused=True` for the optimizers that have it (SGD, Adam, AdamW, Adagrad): all parameters
are updated in one call, where torch's default on a processor is a loop over them.

**Where it helps.** Models with many parameters, where the optimizer takes part of the step.

**What else it changes.** The last bits of the update.
"""

from __future__ import annotations

from typing import Any, Final

from hotlap.knobs.offers import judged, no_variables
from hotlap.knobs.optimizer_argument import replace_argument
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "fused_optimizer"
PHASE: Final = "optimizer"
NUMERICS: Final = ("rounding",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it where the optimizer takes time and is not fused yet."""
    if case.facts.defaults.get("fused") is True:
        return No("the optimizer is fused already")
    because = "the optimizer updates its parameters in a loop"
    share = share_of(case.facts, "optimizer")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, _value: Any) -> None:
    """Give the argument to optimizers that take it."""
    replace_argument(target, "fused", "foreach")


def snippet(value: Any) -> str:
    """Return the argument to add where the optimizer is made."""
    return f"optimizer = torch.optim.AdamW(model.parameters(), fused={bool(value)})"
