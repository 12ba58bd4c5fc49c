"""# HL322 parameter-penalty: a penalty over all parameters is built into the graph at each step

**What.** The loss contains a sum over the model's parameters (L2 or L1 regularisation written by
hand). Its forward pass reads every weight, its backward pass writes as much again, at any batch
size.

**How it is measured.** Sampled stacks of the line that goes through the parameters, and its part of
the backward pass by torch.profiler's numbers.

**When it is wrong.** A penalty that is no function of single weights (orthogonality, spectral
norms) has no place in the optimizer: it can only be done less often.

**What to do.** For a squared penalty `weight_decay` of the optimizer: its gradient is added where
the weights are updated anyway. For others, the gradient by hand, in `torch._foreach_*`.
"""

from __future__ import annotations

import re

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.passes import backward_of
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL322"
NAME = "parameter-penalty"
_THROUGH = re.compile(r"\.(named_)?parameters\(|\.state_dict\(")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge arithmetic over all parameters that has a backward pass of its own."""
    costs = costs_of(facts)
    behind = backward_of(facts)
    if not behind:
        return Unknown("the backward pass was not divided among the lines of the forward pass")
    region = region_of(
        [one for one in costs if behind.get(one.key) and _goes_through(facts, one)], costs
    )
    if region is None:
        return Clear("no line with gradients goes through the parameters")
    share = min(0.99, region.share + sum(behind.get(key, 0.0) for key in region.keys))
    if not worth(facts, share):
        return Clear("a penalty over the parameters takes little time")
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase=region.top.phase,
            share=predict.recoverable(share, least=0.85),
            reason=True,
            remedy=Remedy("code", (), "nothing for a squared penalty as weight_decay of SGD"),
            say=(
                f"{percent(share)} of the time, its backward pass included, goes into a penalty "
                f"over the model's parameters: {texts_of(facts, region.costs)} at "
                f"{at(region.line)}, built into the graph at each step. For an L2 regularisation "
                "(squares) set the optimizer's weight_decay instead, which adds its gradient "
                "where the weights are updated anyway."
            ),
            evidence=(Evidence("with its backward pass", round(share, 3), "share of the run"),),
        ),
    )


def _goes_through(facts: Facts, cost: Cost) -> bool:
    """Tell whether a line, or a loop around it, goes through the parameters of a module."""
    line = facts.source.get(cost.key)
    if cost.role != "trainer" or cost.phase not in ("other", "forward") or line is None:
        return False
    around = (facts.source.get(f"{cost.place.file}:{number}") for number in line.loops)
    texts = [line.text, *(one.text for one in around if one is not None)]
    return any(_THROUGH.search(text) for text in texts)
