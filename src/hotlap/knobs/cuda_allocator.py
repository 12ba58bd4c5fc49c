"""# cuda_allocator: GPU memory is kept in pieces that can grow

**What.** `expandable_segments:True` for torch's allocator of GPU memory: a piece of memory grows in
the place of a new one being asked for. With shapes that vary, less memory lies unused, and the
driver is asked less often.

**Where it helps.** Trainings on a CUDA device with inputs of varying length, or near the limit of
its memory.

**What else it changes.** Nothing in the numbers. What the environment says already
(`PYTORCH_ALLOC_CONF`, `PYTORCH_CUDA_ALLOC_CONF`) stays.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any, Final

from hotlap.knobs.offers import judged
from hotlap.knobs.target import Target
from hotlap.values.knob import Case, No, Offer
from hotlap.values.shares import is_cuda, share_of

NAME: Final = "cuda_allocator"
PHASE: Final = "forward"
NUMERICS: Final = ("identical",)
VARIABLES: Final = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
_EXPANDABLE: Final = "expandable_segments"


def applies(case: Case) -> Offer | No:
    """Offer it to trainings on a CUDA device, if the user has chosen nothing."""
    if not is_cuda(case.facts):
        return No("the training is not on a CUDA device")
    for name in VARIABLES:
        if case.environ.get(name):
            return No(f"{name} is set in the environment, and stays")
    because = "GPU memory is taken in pieces of fixed size"
    share = share_of(case.facts, "forward", "backward")
    return judged(case, NAME, share, Offer((_EXPANDABLE,), NUMERICS[0], because))


def environment(value: Any, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the variable of torch's allocator, unless the user has set it."""
    if value != _EXPANDABLE or any(environ.get(name) for name in VARIABLES):
        return {}
    return {VARIABLES[0]: f"{_EXPANDABLE}:True"}


def apply(target: Target, value: Any) -> None:
    """Prove that torch was started with it."""
    if not sys.modules["torch"].cuda.is_available():
        target.note("there is no CUDA device here")
    elif os.environ.get(VARIABLES[0]) == f"{value}:True":
        target.acted("torch was started with it")
    else:
        target.note("its variable was not set when the process started")


def snippet(value: Any) -> str:
    """Return what to set in front of the command."""
    return f"{VARIABLES[0]}={value}:True python …"
