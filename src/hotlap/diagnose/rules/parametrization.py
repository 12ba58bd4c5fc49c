"""# HL319 parametrization: a layer's weight is computed anew at every turn of a loop

**What.** The layer has a parametrization (orthogonal, weight norm, spectral norm): each time its
weight is used it is computed from other parameters. In a loop, over time steps for instance, that
is done once a turn, and once more in the backward pass, though the result is the same each time.

**How it is measured.** Sampled stacks inside torch's parametrizations, below a line in a loop of
the model; the backward pass by torch.profiler's numbers of the operators.

**When it is wrong.** Where the parameters change between the turns.

**What to do.** Put the loop under `torch.nn.utils.parametrize.cached()`, or compute the weight once
before it.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.weights import weights_again
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Finding, Remedy, Unknown

CODE = "HL319"
NAME = "parametrization"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge parametrized weights in loops."""
    if not costs_of(facts):
        return Unknown("no stacks were sampled")
    again = weights_again(facts)
    if again is None:
        return Clear("no parametrized weight is computed in a loop, or it takes little time")
    region = again.region
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="forward",
            share=Bounds(0.75 * again.share, again.most),
            first=region.line,
            reason=True,
            remedy=Remedy("code", (), "nothing: the weight is the same at every turn"),
            say=(
                f"{percent(again.share)} of the time, with the backward pass, goes into computing "
                f"a parametrized weight (parametrization) again at every turn of the loop at line "
                f"{again.loop.line}: {texts_of(facts, region.costs)} at {at(region.line)}. The "
                "weight is the same at each: compute it once per forward pass, with the loop under "
                "torch.nn.utils.parametrize.cached()."
            ),
        ),
    )
