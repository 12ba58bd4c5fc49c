"""# HL309 host-work-in-model: the forward or backward pass does work that is not the model's

**What.** Inside the model's passes time goes into Python, numpy, sleeping, copying or rebuilding
tensors that never change, rather than into the model's arithmetic.

**How it is measured.** Sampled stacks inside the pass; a line counts when torch.profiler sees few
heavy operators (matrix products, convolutions, attention) below it, or none while the line takes
time.

**When it is wrong.** Models whose arithmetic is elementwise by nature (some physics, some losses).

**What to do.** Move it out of the step, compute it once, or express it in batched tensor
operations.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, state_of, worth
from hotlap.diagnose.compute import MODEL_PHASES, in_loop, is_models_own
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.operators import operators_at
from hotlap.diagnose.passes import backward_of
from hotlap.diagnose.regions import by_function, region_of
from hotlap.diagnose.say import at, doing, percent, texts_of
from hotlap.diagnose.shares import is_cpu
from hotlap.diagnose.step_lines import framework_lines
from hotlap.diagnose.work import region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL309"
NAME = "host-work-in-model"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge lines of the model's passes that do something else."""
    costs = costs_of(facts)
    if not costs:
        return Unknown("no stacks were sampled")
    trainers = framework_lines(costs)
    strange = [
        one
        for one in costs
        if one.phase in MODEL_PHASES
        and one.role == "trainer"
        and one.key not in trainers
        and not is_models_own(facts, one)
    ]
    for group in by_function(strange):
        region = region_of(group, costs)
        if region is None or not worth(facts, region.share):
            continue
        if region.top.phase != "forward" and region_kind(region.costs) is None:
            continue  # the line of a backward pass or an optimizer's step is the model's own
        top = region.top
        kind, operators = region_kind(region.costs), operators_at(facts, region.keys)
        if kind is None and operators is None and not is_cpu(facts):
            continue
        what = f", {kind.noun}" if kind else f" ({doing(top)})" if doing(top) else ""
        loop = in_loop(facts, top)
        again = f" inside a Python loop at line {loop}" if loop and top.callers else ""
        advice = kind.advice if kind else "compute it once, or with one batched operator"
        behind = sum(backward_of(facts).get(key, 0.0) for key in region.keys)
        share = min(0.97, region.share + (behind if top.phase == "forward" else 0.0))
        more = (
            f", and {percent(behind)} more into its backward pass" if worth(facts, behind) else ""
        )
        return finding(
            facts,
            Rule(CODE, NAME),
            region,
            Claim(
                phase=top.phase,
                share=predict.recoverable(share, least=0.8),
                status="suspected",
                remedy=Remedy("code", (), "nothing, if the values stay the same"),
                say=(
                    f"In the {top.phase} pass {percent(region.share)} of the time goes into "
                    f"{texts_of(facts, region.costs)} at {at(region.line)}{what}{again}{more}: it "
                    "is repeated at every step and is not the model's own arithmetic. To mend it, "
                    f"{advice}."
                ),
                evidence=(
                    Evidence(
                        "heavy operators on these lines",
                        None if operators is None else round(operators.heavy_share, 3),
                        "share of operators' time",
                    ),
                    Evidence("state", state_of(region), ""),
                ),
            ),
        )
    return Clear("the model's passes do the model's arithmetic")
