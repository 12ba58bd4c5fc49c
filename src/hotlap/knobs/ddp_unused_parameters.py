"""# ddp_unused_parameters: DDP does not look for parameters without a gradient

**What.** `find_unused_parameters=True` lets DistributedDataParallel walk through the graph of each
step to find parameters that get no gradient. With this knob it does not.

**Where it helps.** Where the script asks for the walk and every parameter gets a gradient.

**What else it changes.** Nothing, as long as every parameter gets a gradient at each step. One that
gets none makes DDP raise an error at the next step.
"""

from __future__ import annotations

from typing import Any, Final

from hotlap.knobs.ddp_argument import replace_argument
from hotlap.knobs.offers import judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of

NAME: Final = "ddp_unused_parameters"
PHASE: Final = "communication"
NUMERICS: Final = ("identical",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it where the walk is asked for and found nothing."""
    names = ("find_unused_parameters", "ddp_find_unused_parameters")
    if not any(one.name in names and one.value is True for one in case.facts.settings):
        return No("the script does not ask for unused parameters")
    unused = case.facts.defaults.get("unused_parameters")
    if unused is None:
        return No("whether every parameter gets a gradient was not measured")
    if unused:
        return No("some parameters get no gradient, so the walk is needed")
    because = "DDP looks for unused parameters at each step, and there are none"
    share = share_of(case.facts, "forward", "backward", "communication")
    return judged(case, NAME, share, Offer((False,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Give the argument to each DistributedDataParallel."""
    replace_argument(target, "find_unused_parameters", bool(value))


def snippet(value: Any) -> str:
    """Return the argument to change."""
    return f"model = DistributedDataParallel(model, find_unused_parameters={bool(value)})"
