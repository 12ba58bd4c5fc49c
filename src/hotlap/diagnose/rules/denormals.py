"""# HL308 denormals: numbers so small that the processor handles them in slow motion

**What.** Values below 1e-38 (denormal, subnormal) make single operations many times slower on many
processors; decaying activations, gradients or averages drift there.

**How it is measured.** A trial with denormals flushed to zero, compared with the script as it
stands.

**When it is wrong.** Where such small values matter, which is rare in training.

**What to do.** `torch.set_flush_denormal(True)`, or keep values away from zero.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.shares import run_share
from hotlap.diagnose.switches import faster, what_if
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Finding, Remedy, Unknown

CODE = "HL308"
NAME = "denormals"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge flushing denormals."""
    tried = what_if(facts, "flush_denormal", True)
    if tried is None:
        return Unknown("flushing denormals was not tried")
    share = predict.by_what_if(tried, run_share(facts, "steps") or 1.0)
    if not faster(facts, tried) or not worth(facts, share.high):
        return Clear("flushing denormals was tried and made no difference")
    region = select(costs_of(facts), lambda one: one.phase in ("forward", "backward", "optimizer"))
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase=region.top.phase if region else "forward",
            share=share,
            status="proven",
            remedy=Remedy("knob", ("flush_denormal",), "values below 1e-38 become 0"),
            say=(
                "The training computes with denormal (subnormal, nearly zero) numbers, which this "
                "processor handles many times slower. Call torch.set_flush_denormal(True), or keep "
                "the values away from zero."
            ),
        ),
    )
