"""# HL109 input-sampler: choosing the indices is slow

**What.** The sampler (the order of samples) is computed in the training process, at the start of
every epoch or for each batch, and the training stands still meanwhile.

**How it is measured.** Sampled stacks of the training thread between epochs and while it waits for
batches, in code that is called by the loader's sampler.

**When it is wrong.** A sampler that is slow once, before the first step, belongs to start-up.

**What to do.** Compute weights or order once, with array operations, or in a library sampler.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Finding, Remedy, Unknown

CODE = "HL109"
NAME = "input-sampler"
_PHASES = ("data_wait", "epoch_edge", "evaluation")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the code that chooses indices."""
    region = select(costs_of(facts), _samples)
    if region is None or not worth(facts, region.share):
        return Clear("choosing indices takes little time")
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase=region.top.phase,
            share=predict.recoverable(region.share, least=0.9),
            remedy=Remedy("code", (), "nothing, if the order stays the same"),
            say=(
                f"{percent(region.share)} of the time goes into the sampler, which chooses the "
                "order "
                f"of samples in the training process: {texts_of(facts, region.costs)} at "
                f"{at(region.line)}. Compute it once, with array operations, not per epoch or "
                "index."
            ),
        ),
    )


def _samples(cost: Cost) -> bool:
    if cost.role != "trainer" or cost.phase not in _PHASES:
        return False
    inside = sum(ns for leaf, ns in cost.leaves if "sampler" in leaf.lower())
    return inside >= 0.3 * sum(ns for _, ns in cost.leaves) > 0
