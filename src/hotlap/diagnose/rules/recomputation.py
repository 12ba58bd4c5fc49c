"""# HL317 recomputation: the forward pass is computed a second time in the backward pass

**What.** Activation checkpointing (gradient checkpointing) drops the activations of the forward
pass and computes them again when the backward pass needs them. It saves memory, and costs up to one
more forward pass a step.

**How it is measured.** torch.profiler sees operators in the backward pass that only a forward pass
calls; and a trial keeps the activations instead, compared with the script as it stands.

**When it is wrong.** Where the activations would not fit into memory, the price is paid for a
reason. The trial shows that they fit here, with this batch size.

**What to do.** Switch it off, or checkpoint only the layers with the largest activations. What it
computes is the same.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.passes import recomputed
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent
from hotlap.diagnose.shares import run_share, step_share
from hotlap.diagnose.switches import RECOMPUTES, faster, first_setting, truthy, what_if
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL317"
NAME = "recomputation"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge what the backward pass computes once more."""
    asked = first_setting(facts, RECOMPUTES, truthy)
    part = recomputed(facts)
    forward = step_share(facts, "forward")
    tried = what_if(facts, "activation_checkpointing", False)
    if tried is not None:
        if not faster(facts, tried):
            return Clear("keeping the activations was tried and made no difference")
        share = predict.by_what_if(tried, run_share(facts, "steps") or 1.0)
    elif part is None or forward is None:
        if asked is None:
            return Clear("the script asks for no recomputation")
        return Unknown("operators were not profiled, and keeping activations was not tried")
    else:
        share = Bounds(0.7 * part * forward, min(0.99, part * forward))
    if not worth(facts, share.high):
        return Clear("the backward pass computes little of the forward pass again")
    region = select(costs_of(facts), lambda one: one.phase == "backward")
    where = f" (asked for at {at(asked)})" if asked is not None else ""
    much = f", {percent(part)} of the forward pass" if part is not None else ""
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="backward",
            share=share,
            status="proven" if tried is not None else "suspected",
            first=asked,
            reason=True,
            remedy=Remedy(
                "knob", ("activation_checkpointing",), "activations stay in memory meanwhile"
            ),
            say=(
                f"Activation checkpointing (gradient checkpointing{where}) drops activations and "
                f"recomputes them: the backward pass runs the forward pass a second time{much}. "
                "Where the activations fit into memory, switch it off, or keep it for the largest "
                "layers only."
            ),
            evidence=(
                Evidence(
                    "computed again", None if part is None else round(part, 3), "of forward passes"
                ),
            ),
        ),
    )
