"""# HL325 closure-twice: the gradients are computed before the optimizer's step and again inside it

**What.** An optimizer that is given a closure calls it, and loss and gradients are computed there.
Where the script has called the closure itself just before, the first of the two is thrown away.

**How it is measured.** Sampled stacks: the same lines of the backward pass are reached both through
the optimizer's step and beside it.

**When it is wrong.** Methods that move the weights between the two (SAM) need both; so only torch's
own optimizers are judged. Gradients of several calls that are meant to add up need a closure that
does not clear them.

**What to do.** Call `step(closure)` alone, which returns the loss; or call the closure and then
`step()` without one.
"""

from __future__ import annotations

from collections import defaultdict

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import base_of, costs_of
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, percent
from hotlap.values.facts import Facts, Measured
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place
from hotlap.values.trial import ProfileEntry

CODE = "HL325"
NAME = "closure-twice"
_ALIKE = 0.6
"""The lesser of two passes that are the same takes at least this part of the other."""
_MODEL = ("forward", "backward")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge passes that run before an optimizer's step and again inside it."""
    base = base_of(facts)
    if base is None or not isinstance(facts.profile, Measured):
        return Unknown("no stacks were sampled")
    step = _stepping(facts.profile.value)
    if step is None:
        return Clear("no optimizer of torch's calls a closure")
    inside: dict[Place, int] = defaultdict(int)
    beside: dict[Place, int] = defaultdict(int)
    for one in facts.profile.value:
        if one.role == "trainer" and one.phase in _MODEL and one.place is not None:
            (inside if step in one.callers else beside)[one.place] += one.ns
    twice = {
        place
        for place in inside
        if min(inside[place], beside[place]) >= _ALIKE * max(inside[place], beside[place])
    }
    again = sum(min(inside[place], beside[place]) for place in twice)
    share = again / base.ns
    if not worth(facts, share):
        return Clear("the passes inside of the optimizer's step are not made beside it as well")
    costs = costs_of(facts)
    region = region_of([one for one in costs if one.place in twice], costs)
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="optimizer",
            share=predict.recoverable(share, least=0.8),
            first=step,
            reason=True,
            remedy=Remedy("code", (), "nothing: the first gradients were cleared by the second"),
            say=(
                f"Loss and gradients are computed twice in each step: once beside the optimizer, "
                f"and again inside of its step at {at(step)}, which is given a closure and calls "
                f"it ({percent(share)} of the time is the second of the two). Call step(closure) "
                "alone and take the loss that it returns, or call step() without a closure."
            ),
            evidence=(
                Evidence("backward passes", facts.counts.get("backwards_per_step"), "per step"),
                Evidence("the same passes again", round(share, 3), "share of the run"),
            ),
        ),
    )


def _stepping(entries: tuple[ProfileEntry, ...]) -> Place | None:
    """Return the line that steps an optimizer of torch's and has a backward pass below it."""
    lines = {
        one.place: 0
        for one in entries
        if one.phase == "optimizer" and one.leaf.startswith("torch.optim.") and one.place
    }
    for one in entries:
        if one.phase == "backward" and one.role == "trainer":
            for place in lines.keys() & set(one.callers):
                lines[place] += one.ns
    step = max(lines, key=lambda place: lines[place], default=None)
    return step if step is not None and lines[step] else None
