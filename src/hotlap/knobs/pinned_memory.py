"""# pinned_memory: batches are copied to the GPU beside the work, not before it

**What.** `pin_memory=True` for loaders, so that batches lie in memory that the GPU reads by itself,
and `non_blocking=True` for copies of these batches, so that the script does not wait for them.

**Where it helps.** Trainings on a CUDA device, where `transfer` takes part of the step.

**What else it changes.** Memory: pinned pages cannot be swapped out. Numbers are the same; a script
that writes into a batch after having copied it would race with the copy.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Final

from hotlap.knobs.loader_argument import replace_argument
from hotlap.knobs.offers import is_settled, judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import is_cuda, share_of, training_loader

NAME: Final = "pinned_memory"
PHASE: Final = "transfer"
NUMERICS: Final = ("identical",)
environment = no_variables
_PINNED: Final = "_hotlap_pinned"


def applies(case: Case) -> Offer | No:
    """Offer it to trainings on a CUDA device whose loader does not pin its batches."""
    if not is_cuda(case.facts):
        return No("the training is not on a CUDA device")
    if training_loader(case.facts) is None:
        return No("no DataLoader feeds the training")
    pinned = is_settled(case.facts, ("pin_memory", "dataloader_pin_memory"), True)
    if pinned and is_settled(case.facts, ("non_blocking",), True):
        return No("the script does both already")
    because = "batches are copied to the GPU while the script waits"
    share = share_of(case.facts, "transfer")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Let loaders pin their batches, and copies of pinned batches be made beside the work."""
    torch = sys.modules["torch"]
    if not value:
        return
    if not torch.cuda.is_available():
        target.note("there is no CUDA device here")
        return
    replace_argument(target, "pin_memory")
    _mark_pinned(target)
    for name in ("to", "cuda"):
        _copy_beside(target, name)


def _mark_pinned(target: Target) -> None:
    """Mark the tensors that a loader has pinned: nobody else holds these."""
    torch = sys.modules["torch"]
    place = torch.utils.data._utils.pin_memory
    own = place.pin_memory

    @functools.wraps(own)
    def pin_memory(data: Any, *args: Any, **kwargs: Any) -> Any:
        pinned = own(data, *args, **kwargs)
        if isinstance(pinned, torch.Tensor):
            with contextlib.suppress(AttributeError):
                setattr(pinned, _PINNED, True)
        return pinned

    target.replace(place, "pin_memory", pin_memory)


def _copy_beside(target: Target, name: str) -> None:
    """Let ``Tensor.to`` or ``Tensor.cuda`` not wait for the copy of a marked tensor."""
    owner = sys.modules["torch"].Tensor
    own = getattr(owner, name)

    @functools.wraps(own)
    def copy(self: Any, *args: Any, **kwargs: Any) -> Any:
        if _PINNED in vars(self) and "non_blocking" not in kwargs and len(args) <= 1:
            kwargs["non_blocking"] = True
            target.acted("pinned batches were copied without waiting")
        return own(self, *args, **kwargs)

    target.replace(owner, name, copy)


def snippet(_value: Any) -> str:
    """Return the two places to change."""
    return "loader = DataLoader(..., pin_memory=True)\nx = x.to(device, non_blocking=True)"
