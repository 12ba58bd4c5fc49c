"""# HL318 lopsided-step: a loss or an optimizer of the script's own costs more than the model

**What.** A step is mostly the model: its forward pass and the backward pass through it. Here tensor
arithmetic that the script does beside the model (a penalty, a pairwise loss, a regulariser) takes
more than twice as long as the model with its share of the backward pass; or an optimizer written in
the script takes more than both passes.

**How it is measured.** The exclusive phases of the step by sampled stacks. The backward pass is
divided by torch.profiler's numbers among the lines of the forward pass that its operators belong
to.

**When it is wrong.** Where that arithmetic is the point of the training: a contrastive loss over
all pairs may be meant so. Then it is still the place where time can be won.

**What to do.** Write it so that smaller matrices are multiplied, do it on a part of the batch, or
every n steps.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.compute import is_models_own
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.passes import backward_of
from hotlap.diagnose.regions import Region, region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.shares import step_share
from hotlap.diagnose.step_lines import below_step, training_function
from hotlap.diagnose.work import is_never_arithmetic, kind_of, region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL318"
NAME = "lopsided-step"
_LOSS = 2.0
_A_MODEL = 0.02
"""Share of the run from which on the forward pass of a module is one: some scripts have none."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge what stands beside the model's own passes."""
    costs = costs_of(facts)
    forward, backward = step_share(facts, "forward"), step_share(facts, "backward")
    if not costs or forward is None or backward is None:
        return Unknown("no stacks were sampled in the model's passes")
    if forward < _A_MODEL:
        return Clear("the script's model is no module whose passes could be compared")
    return (
        _optimizer(facts, costs, forward + backward)
        or _loss(facts, costs, forward, backward)
        or Clear("the model's own passes are the largest part of the step's arithmetic")
    )


def _optimizer(facts: Facts, costs: tuple[Cost, ...], passes: float) -> Finding | None:
    loop = training_function(costs)
    whole = step_share(facts, "optimizer") or 0.0
    own = [one for one in costs if one.phase == "optimizer" and _is_scripts(one, loop)]
    region = region_of(own, costs)
    if region is None or region.share < 0.5 * whole or whole <= passes:
        return None
    if not worth(facts, region.share):
        return None
    words = (
        f"The optimizer's step is {whole / passes:.1f} times as long as the model's forward and "
        f"backward passes together; {percent(region.share)} of the time goes into"
    )
    return _found(facts, region, region.share, "optimizer", words)


def _is_scripts(cost: Cost, loop: tuple[str, str] | None) -> bool:
    """Tell whether a line is of an optimizer in the script, and no call of one of torch's."""
    torchs = sum(ns for leaf, ns in cost.leaves if leaf.startswith("torch.optim"))
    whole = sum(ns for _, ns in cost.leaves)
    below = loop is not None and bool(below_step(cost, loop))
    beside = is_never_arithmetic(kind_of(cost))
    return cost.role == "trainer" and below and not beside and torchs < 0.5 * whole


def _loss(facts: Facts, costs: tuple[Cost, ...], forward: float, backward: float) -> Finding | None:
    beside = [
        one
        for one in costs
        if one.phase == "other" and one.role == "trainer" and is_models_own(facts, one)
    ]
    region = region_of(beside, costs)
    if region is None:
        return None
    in_model = {one.key for one in costs if one.phase == "forward"}
    of_lines = backward_of(facts)
    behind = sum(of_lines.get(key, 0.0) for key in region.keys - in_model)
    share = min(0.99, region.share + behind)
    models = forward + backward - behind
    if share < _LOSS * models or not worth(facts, share):
        return None
    words = (
        "The script's own arithmetic beside the model (a loss, penalty or regularisation term) "
        f"takes {percent(region.share)} of the time and {percent(behind)} more in its backward "
        f"pass, {share / models:.1f} times what the model takes:"
    )
    return _found(facts, region, share, "other", words)


def _found(facts: Facts, region: Region, share: float, phase: str, words: str) -> Finding:
    kind = region_kind(region.costs)
    advice = kind.advice if kind else "write it with smaller products, or do it every n steps"
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase=phase,
            share=predict.recoverable(share, least=0.7),
            remedy=Remedy("code", (), "what is learned, if it is done less often"),
            say=(
                f"{words} {texts_of(facts, region.costs)} at {at(region.line)}"
                f"{f', {kind.noun}' if kind else ''}. To mend it, {advice}."
            ),
            evidence=(Evidence("with its backward pass", round(share, 3), "share of the run"),),
        ),
    )
