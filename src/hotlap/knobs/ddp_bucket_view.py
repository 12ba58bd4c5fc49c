"""# ddp_bucket_view: gradients lie in the buckets that are sent

**What.** `gradient_as_bucket_view=True`: gradients are views of DistributedDataParallel's buckets,
so they are copied neither into these nor back.

**Where it helps.** Trainings on several ranks with many parameters.

**What else it changes.** Nothing in the numbers. A script that calls `.grad.detach_()` gets an
error.
"""

from __future__ import annotations

from typing import Any, Final

from hotlap.knobs.ddp_argument import replace_argument
from hotlap.knobs.offers import is_settled, judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import share_of, trainer_of

NAME: Final = "ddp_bucket_view"
PHASE: Final = "backward"
NUMERICS: Final = ("identical",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it to trainings on several ranks."""
    trainer = trainer_of(case.facts)
    if trainer is None or (trainer.world_size or 1) < 2:
        return No("the training has one rank")
    if is_settled(case.facts, ("gradient_as_bucket_view",), True):
        return No("the script has set it already")
    because = f"gradients of {trainer.world_size} ranks are copied into buckets"
    share = share_of(case.facts, "backward", "communication")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Give the argument to each DistributedDataParallel."""
    replace_argument(target, "gradient_as_bucket_view", bool(value))


def snippet(value: Any) -> str:
    """Return the argument to add."""
    return f"model = DistributedDataParallel(model, gradient_as_bucket_view={bool(value)})"
