"""# HL302 double-precision: the model computes in float64

**What.** Parameters or inputs are 64-bit floats, often because numpy's default type leaked in.
Memory traffic doubles, and arithmetic is at most half as fast.

**How it is measured.** Input types of the heavy operators in a profiled trial, and the types of
the model's parameters.

**When it is wrong.** Where double precision is needed (some physics, some statistics): then it is
the price of it.

**What to do.** Convert data to float32 where it enters, and create the model in float32.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.operators import dtype_share
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import step_share
from hotlap.diagnose.switches import first_setting
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL302"
NAME = "double-precision"
_SETTINGS = ("float64", "double", "set_default_dtype")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the type in which the model computes."""
    share = dtype_share(facts, ("double", "float64", "torch.float64"))
    parameters = facts.defaults.get("parameter_dtypes") or ()
    if share is None:
        if not parameters:
            return Unknown("operators were not profiled")
        share = 1.0 if any("float64" in str(one) for one in parameters) else 0.0
    if share < 0.3:
        return Clear("the model does not compute in float64")
    compute = sum(step_share(facts, name) or 0.0 for name in ("forward", "backward", "optimizer"))
    if not worth(facts, share * compute):
        return Clear("computing takes too little of the time for its type to matter")
    region = select(costs_of(facts), lambda one: one.phase in ("forward", "backward"))
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="forward",
            share=Bounds(0.35 * share * compute, 0.6 * share * compute),
            first=first_setting(facts, _SETTINGS),
            remedy=Remedy("code", (), "the precision of every result: float32 in place of float64"),
            say=(
                f"{percent(share)} of the model's arithmetic runs in float64 (double precision), "
                "which "
                "takes about twice the time and memory of float32. Convert the data where it "
                "enters "
                f"and create the model in float32."
            ),
            evidence=(
                Evidence("heavy operators in float64", round(share, 3), "share of their time"),
            ),
        ),
    )
