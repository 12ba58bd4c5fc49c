"""# foreach_optimizer: parameters are updated in groups

**What.** `foreach=True` for optimizers that have it: parameters of one kind are updated together.
Nearly all of torch's optimizers take it, also those that have no fused kernel.

**Where it helps.** Models with many small parameters on a processor. On a GPU it is the default.

**What else it changes.** The last bits of the update, and memory for the groups' temporaries.
"""

from __future__ import annotations

from typing import Any, Final

from hotlap.knobs.offers import judged, no_variables
from hotlap.knobs.optimizer_argument import replace_argument
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import is_cuda, share_of

NAME: Final = "foreach_optimizer"
PHASE: Final = "optimizer"
NUMERICS: Final = ("rounding",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it where the optimizer takes time and neither this nor the fused one is on."""
    if case.facts.defaults.get("foreach") is True or case.facts.defaults.get("fused") is True:
        return No("the optimizer updates its parameters together already")
    if case.applied.get("fused_optimizer"):
        return No("fused_optimizer is on, which does more")
    if is_cuda(case.facts):
        return No("it is torch's default on a GPU")
    because = "the optimizer updates its parameters in a loop"
    share = share_of(case.facts, "optimizer")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, _value: Any) -> None:
    """Give the argument to optimizers that take it."""
    replace_argument(target, "foreach", "fused")


def snippet(value: Any) -> str:
    """Return the argument to add where the optimizer is made."""
    return f"optimizer = torch.optim.AdamW(model.parameters(), foreach={bool(value)})"
