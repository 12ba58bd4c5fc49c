"""# HL320 backward-in-loop: gradients are taken one at a time, each by a backward pass of its own

**What.** A loop calls `autograd.grad` or `backward` once per element, over one forward pass. Each
call goes through the whole graph; where the graph is kept for a second derivative, the last
backward pass goes through all of them again.

**How it is measured.** Backward passes are counted against forward passes, and the line is found in
the sampled stacks of the backward pass, in a loop of the source.

**When it is wrong.** Where each gradient needs the parameters that the one before has changed.

**What to do.** Take the gradient of the sum where elements do not depend on each other, or all in
one call (`is_grads_batched=True`, `torch.func.vmap`, `torch.func.jacrev`).
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.loops import loop_around
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.shares import step_share
from hotlap.diagnose.step_lines import training_function
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL320"
NAME = "backward-in-loop"
_PER_FORWARD = 4.0
"""Accumulation has a forward pass for each backward pass, a few losses share one."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge backward passes in loops."""
    passes = facts.counts.get("backwards_per_step")
    forwards = facts.counts.get("forwards_per_step")
    if passes is None or forwards is None:
        return Unknown("passes were not counted")
    if passes < _PER_FORWARD * max(1.0, forwards):
        return Clear("there are not many backward passes for each forward pass")
    costs = costs_of(facts)
    training = training_function(costs)
    chosen = [one for one in costs if _is_in_loop(facts, one, training)]
    region = region_of(chosen, costs)
    backward = step_share(facts, "backward")
    if region is None or backward is None:
        return Clear("no backward pass was seen in a loop")
    part = 1.0 - max(1.0, forwards) / passes
    # What goes through the kept graphs once more lies in another line's backward pass.
    share = Bounds(region.share * part, max(region.share, 0.9 * backward) * part)
    if not worth(facts, share.low):
        return Clear("the backward passes in loops take little time")
    loop = loop_around(facts, region.top, training)
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="backward",
            share=share,
            reason=True,
            first=region.line,
            remedy=Remedy("code", (), "the last bits of sums"),
            say=(
                f"{passes:.0f} backward passes a step for {forwards:.0f} forward passes: "
                f"{texts_of(facts, region.costs)} at {at(region.line)} goes through the graph once "
                f"per turn of the loop at line {loop.line if loop else region.line.line} (autograd "
                f"one element at a time), {percent(region.share)} of the time by itself and more "
                "where the kept graphs are gone through again. Take the gradient of the sum in one "
                "call, or batch the calls (is_grads_batched=True, torch.func.vmap)."
            ),
            evidence=(
                Evidence("backward passes", round(passes, 1), "per step"),
                Evidence("forward passes", round(forwards, 1), "per step"),
            ),
        ),
    )


def _is_in_loop(facts: Facts, cost: Cost, training: tuple[str, str] | None) -> bool:
    inside = cost.phase == "backward" and cost.role == "trainer"
    return inside and loop_around(facts, cost, training) is not None
