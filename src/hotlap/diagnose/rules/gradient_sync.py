"""# HL502 gradient-sync: gradients are reduced at every micro-step of an accumulation

**What.** DDP reduces gradients in each backward pass, though the optimizer steps only after
several of them: all but the last reduction are thrown work.

**How it is measured.** Backward passes per step of each rank, in a run of several ranks, and
whether the source uses `no_sync`.

**When it is wrong.** On one fast machine the reduction may hide behind computing.

**What to do.** `with model.no_sync():` around forward *and* backward of all micro-steps but the
last.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import step_share
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL502"
NAME = "gradient-sync"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge reductions per optimizer step."""
    if len(facts.run.trainers) < 2:
        return Clear("one process trains")
    passes = facts.counts.get("backwards_per_step")
    if passes is None:
        return Unknown("backward passes were not counted")
    if passes < 1.5:
        return Clear("each step has one backward pass")
    if any(one.name == "no_sync" for one in facts.settings):
        return Clear("no_sync is used")
    backward = step_share(facts, "backward")
    if not worth(facts, backward):
        return Clear("the backward pass takes little time")
    region = select(costs_of(facts), lambda one: one.phase == "backward")
    blocked = region.state_share("blocked") if region else None
    most = (backward or 0.0) * (1.0 - 1.0 / passes)
    waits = blocked if blocked is not None else 0.5
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="backward",
            share=Bounds(0.5 * waits * most, min(most, 1.3 * waits * most + 0.05)),
            remedy=Remedy("code", (), "nothing: the same sums, reduced once"),
            say=(
                f"Gradients are accumulated over {passes:.0f} backward passes but all-reduced "
                "between "
                f"ranks in each of them (the backward pass is {percent(backward or 0.0)} of the "
                "time). "
                f"Put forward and backward of all but the last micro-step under model.no_sync()."
            ),
            evidence=(
                Evidence("backward passes", passes, "per step"),
                Evidence("blocked in backward", blocked, "share of that time"),
            ),
        ),
    )
