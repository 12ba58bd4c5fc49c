"""# HL306 low-precision-unsupported: bf16 or fp16 on a processor without instructions for it

**What.** Autocast converts to a type that this processor can only emulate: each operator converts,
computes and converts back.

**How it is measured.** Types of the heavy operators in a profiled trial, and the processor's own
list of instructions.

**When it is wrong.** Processors with AMX or AVX512-BF16, and GPUs: there it pays, and the rule is
silent.

**What to do.** float32 on this machine.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.operators import dtype_share
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import is_cpu, step_share
from hotlap.diagnose.switches import first_setting
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL306"
NAME = "low-precision-unsupported"
_HALF = ("bfloat16", "c10::BFloat16", "half", "c10::Half", "float16")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge low precision against the hardware."""
    if not is_cpu(facts):
        return Clear("the model runs on a device")
    share = dtype_share(facts, _HALF)
    if share is None:
        return Unknown("operators were not profiled")
    if share < 0.2:
        return Clear("the model computes in full precision")
    if _has_instructions(facts):
        return Clear("this processor computes bf16 in hardware")
    compute = (step_share(facts, "forward") or 0.0) + (step_share(facts, "backward") or 0.0)
    if not worth(facts, share * compute):
        return Clear("computing takes too little of the time for its type to matter")
    region = select(costs_of(facts), lambda one: one.phase in ("forward", "backward"))
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="forward",
            share=Bounds(0.4 * share * compute, 0.95 * share * compute),
            first=first_setting(facts, ("autocast", "bfloat16", "half")),
            remedy=Remedy("code", (), "results in full precision"),
            say=(
                f"{percent(share)} of the arithmetic runs in bf16 or fp16 (autocast), for which "
                "this "
                "processor has no instructions, so each operator converts and emulates. Use "
                "float32 "
                f"on this machine."
            ),
            evidence=(Evidence("low precision", round(share, 3), "share of heavy operators"),),
        ),
    )


def _has_instructions(facts: Facts) -> bool:
    text = str(facts.run.machine.facts).lower()
    return any(word in text for word in ("amx_bf16", "avx512_bf16", "amx_fp16"))
