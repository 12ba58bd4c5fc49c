"""# autocast: matrices are multiplied in bfloat16

**What.** Outermost calls of models run under `torch.autocast`, and what they return is cast back to
float32, so that losses, metrics and the script's own code see what they did. The backward pass runs
outside of it, as torch advises.

**Where it helps.** Devices with bf16 units: NVIDIA GPUs from Ampere on (compute capability 8), and
processors with AVX512-BF16 or AMX. On a processor without them bf16 is many times slower.

**What else it changes.** Precision: 8 bits of the mantissa in place of 24 in matrix products. The
weights and their updates stay in float32.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, Final

from hotlap.knobs.devices import capability, has_bf16
from hotlap.knobs.offers import judged, no_variables
from hotlap.knobs.outermost import mapped, replace_outermost
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import is_cuda, share_of

NAME: Final = "autocast"
PHASE: Final = "forward"
NUMERICS: Final = ("reduced",)
environment = no_variables
_LEAST_SHARE: Final = 0.3
_OWN: Final = ("autocast", "bf16", "fp16", "precision", "bfloat16", "half")


def applies(case: Case) -> Offer | No:
    """Offer it where the device has bf16 units and the script trains in full precision."""
    if is_cuda(case.facts):
        able = capability(case)
        if able is None or able < 8.0:
            return No("the GPU is not known to have bf16 units", hopeless=True)
    elif not has_bf16(case):
        return No("the processor has no instructions for bf16, and would be slower", hopeless=True)
    if any(one.name in _OWN and one.value not in (False, None) for one in case.facts.settings):
        return No("the script sets a precision of its own")
    share = share_of(case.facts, "forward", "backward")
    if (share or 0.0) < _LEAST_SHARE:
        return No("the model takes too little of the time")
    because = "the model computes in float32 on a device with bf16 units"
    return judged(case, NAME, share, Offer(("bfloat16",), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Run outermost calls of models under autocast, and cast their results back."""
    torch = sys.modules["torch"]
    dtype = getattr(torch, str(value))

    def back(tensor: Any) -> Any:
        return tensor.float() if tensor.dtype == dtype else tensor

    def call(
        module: Any, own: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        first = next(module.parameters())
        kind = first.device.type
        if first.dtype != torch.float32 or torch.is_autocast_enabled(kind):
            target.note(f"{type(module).__name__} has a precision of its own")
            return own(module, *args, **kwargs)
        with torch.autocast(kind, dtype=dtype):
            result = own(module, *args, **kwargs)
        target.acted(f"forward passes of {type(module).__name__} ran in {value}")
        return mapped(back, result)

    replace_outermost(target, call)


def snippet(value: Any) -> str:
    """Return the lines around the script's own forward pass."""
    return (
        f"with torch.autocast(device.type, dtype=torch.{value}):\n"
        "    out = model(x)\n"
        "loss = loss_fn(out.float(), y)"
    )
