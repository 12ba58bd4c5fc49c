"""What the device of a training can do, as far as facts tell."""

from __future__ import annotations

from typing import Final

from hotlap.values.knob import Case

_FAST_BF16: Final = frozenset(("amx_bf16", "avx512_bf16", "bf16", "svebf16"))


def has_bf16(case: Case) -> bool:
    """Tell whether the processor has instructions for bf16; False where it is not known."""
    flags = case.facts.run.machine.facts.get("bf16_flags") or ()
    return bool(_FAST_BF16 & set(flags))


def capability(case: Case) -> float | None:
    """Return the lowest compute capability of the machine's GPUs (8.6), None if not known."""
    found = []
    for gpu in case.facts.run.machine.facts.get("gpus") or ():
        both = gpu.get("capability")
        if not both:
            return None
        found.append(float(both[0]) + float(both[1]) / 10)
    return min(found, default=None)
