"""# HL305 optimizer-loop: the optimizer updates its parameters one by one

**What.** With hundreds of small parameters the per-parameter loop of the optimizer costs more than
the arithmetic. On a CPU it is torch's default.

**How it is measured.** The optimizer's exclusive share of the step; a trial with `fused=True` or
`foreach=True` where the optimizer has them.

**When it is wrong.** A few large parameters: then memory bandwidth is the limit.

**What to do.** `fused=True` (else `foreach=True`) when the optimizer is made.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import run_share, step_share
from hotlap.diagnose.switches import faster, first_setting
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL305"
NAME = "optimizer-loop"
_CHANGES = ("fused_optimizer", "foreach_optimizer")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the optimizer's own work."""
    mine = step_share(facts, "optimizer")
    if mine is None:
        return Unknown("no step was seen")
    if not worth(facts, mine):
        return Clear("the optimizer takes little time")
    tried = [one for one in facts.what_ifs if one.change in _CHANGES and one.acted]
    if not tried:
        return Unknown("fused and foreach optimizers were not tried")
    best = max(tried, key=lambda one: one.ratio)
    share = predict.by_what_if(best, run_share(facts, "steps") or 1.0)
    if not faster(facts, best) or not worth(facts, share.high):
        return Clear("fused and foreach optimizers were tried and were not faster")
    region = select(costs_of(facts), lambda one: one.phase == "optimizer")
    tensors = facts.defaults.get("parameters")
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="optimizer",
            share=share,
            first=first_setting(facts, ("foreach", "fused", "optimizer")),
            status="proven",
            remedy=Remedy("knob", ("fused_optimizer",), "the last bits of the update"),
            say=(
                f"The optimizer updates its parameters one at a time (a per-parameter loop), "
                f"{percent(mine)} of the time. Make it with "
                f"{best.change.removesuffix('_optimizer')}=True, which does them together."
                + _about_tables(facts)
            ),
            evidence=(
                Evidence("optimizer step", round(mine, 3), "share of the run"),
                Evidence("parameters", tensors, "tensors"),
            ),
        ),
    )


def _about_tables(facts: Facts) -> str:
    """Return what else would help where most parameters are rows of embedding tables."""
    graded, tables = facts.defaults.get("trainable_elements"), facts.defaults.get("table_elements")
    if not graded or not tables or tables / graded < 0.5:
        return ""
    return (
        " Most parameters are embedding tables with dense gradients, all rows of which are updated "
        "at each step: sparse=True with a sparse optimizer touches only the rows of the batch."
    )
