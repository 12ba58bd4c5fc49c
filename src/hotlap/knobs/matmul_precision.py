"""# matmul_precision: float32 matrices are multiplied less precisely

**What.** `torch.set_float32_matmul_precision`: `high` lets a GPU use TF32, `medium` bf16, where it
has units for them. Sums stay in float32.

**Where it helps.** NVIDIA GPUs from Ampere on (compute capability 8). Processors with bf16
instructions take `medium`.

**What else it changes.** The precision of products: 10 bits of 23 in TF32, 7 in bf16.
"""

from __future__ import annotations

import functools
import sys
from typing import Any, Final

from hotlap.knobs.devices import capability, has_bf16
from hotlap.knobs.offers import judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import is_cuda, share_of

NAME: Final = "matmul_precision"
PHASE: Final = "forward"
NUMERICS: Final = ("reduced",)
environment = no_variables


def applies(case: Case) -> Offer | No:
    """Offer it where the device has units for it and the script keeps full precision."""
    now = case.facts.defaults.get("matmul_precision")
    if now is not None and now != "highest":
        return No(f"the script has set {now!r} already")
    if is_cuda(case.facts):
        able = capability(case)
        if able is None or able < 8.0:
            return No("the GPU is not known to have units for TF32", hopeless=True)
        values: tuple[str, ...] = ("high",)
    elif has_bf16(case):
        values = ("medium",)
    else:
        return No("the processor has no instructions for it", hopeless=True)
    because = "matrices are multiplied in full float32 precision"
    share = share_of(case.facts, "forward", "backward")
    return judged(case, NAME, share, Offer(values, NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Set the precision; the script's own setting is passed over."""
    torch = sys.modules["torch"]
    own = torch.set_float32_matmul_precision
    before = torch.get_float32_matmul_precision()

    @functools.wraps(own)
    def set_float32_matmul_precision(precision: str) -> None:
        if precision != value:
            target.acted(f"{precision} was asked for, {value} is used")
        own(value)

    target.replace(torch, "set_float32_matmul_precision", set_float32_matmul_precision)
    own(str(value))
    if before != value:
        target.undo_with(lambda: own(before))
        target.acted(f"{before} before, {value} now")


def snippet(value: Any) -> str:
    """Return the line to paste."""
    return f"torch.set_float32_matmul_precision({str(value)!r})"
