"""# cudnn_benchmark: cuDNN tries its algorithms and keeps the fastest

**What.** `torch.backends.cudnn.benchmark = True`: at the first convolution of a shape all
algorithms are tried.

**Where it helps.** Convolutional nets on a CUDA device whose inputs keep their shapes. With many
shapes each one is tried anew, which costs more than it saves.

**What else it changes.** Another algorithm sums in another order: the last bits of sums.
"""

from __future__ import annotations

import sys
from typing import Any, Final

from hotlap.knobs.channels_last import convolutions
from hotlap.knobs.offers import is_settled, judged, no_variables
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import is_cuda, share_of

NAME: Final = "cudnn_benchmark"
PHASE: Final = "forward"
NUMERICS: Final = ("rounding",)
environment = no_variables
_LEAST_PART: Final = 0.1


def applies(case: Case) -> Offer | No:
    """Offer it to convolutional nets on a CUDA device."""
    if not is_cuda(case.facts):
        return No("the training is not on a CUDA device")
    if is_settled(case.facts, ("use_deterministic_algorithms", "deterministic"), True):
        return No("the script asks for deterministic algorithms")
    part = convolutions(case.facts)
    if part is not None and part < _LEAST_PART:
        return No(f"convolutions are {part * 100:.0f} % of the model's time")
    because = "cuDNN chooses its algorithms by a rule of thumb"
    share = share_of(case.facts, "forward", "backward")
    return judged(case, NAME, share, Offer((True,), NUMERICS[0], because))


def apply(target: Target, value: Any) -> None:
    """Set the switch."""
    torch = sys.modules["torch"]
    place, before = torch.backends.cudnn, torch.backends.cudnn.benchmark
    if not torch.cuda.is_available():
        target.note("there is no CUDA device here")
    elif bool(before) != bool(value):
        place.benchmark = bool(value)
        target.undo_with(lambda: setattr(place, "benchmark", before))
        target.acted(f"{before} before, {bool(value)} now")


def snippet(value: Any) -> str:
    """Return the line to paste."""
    return f"torch.backends.cudnn.benchmark = {bool(value)}"
