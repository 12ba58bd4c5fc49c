"""# HL321 passes-beside: the model runs outside of the training loop, and no backward pass follows

**What.** Forward passes from another place than the training loop, which are no evaluation either:
batch norm statistics computed anew (`update_bn`), calibration, features or predictions of the whole
data set, each time round.

**How it is measured.** Sampled stacks of forward passes that were not called from the function that
holds the training loop, where batches of a loader are taken for them.

**When it is wrong.** Where these passes are the point, as in distillation ahead of each epoch.

**What to do.** Do it once at the end, less often, on a part of the data, or without it.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import Region, region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.step_lines import framework_lines, training_function
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Finding, Remedy, Unknown

CODE = "HL321"
NAME = "passes-beside"
_MOST = 0.5
"""Of the forward passes, below the function that is taken for the training loop's."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge forward passes outside of the training loop."""
    costs = costs_of(facts)
    forward = [one for one in costs if one.phase == "forward" and one.role == "trainer"]
    loop = training_function(costs)
    if loop is None or not forward:
        return Unknown("no stack of the training loop was seen")
    within = sum(one.share for one in forward if _is_below(one, loop))
    if within < _MOST * sum(one.share for one in forward):
        return Clear("the function that trains could not be told from the others")
    trainers = framework_lines(costs)
    beside = [one for one in forward if not _is_below(one, loop) and one.key not in trainers]
    region = region_of(beside, costs)
    if region is None or not worth(facts, region.share):
        return Clear("forward passes outside of the training loop take little time")
    if not any(_draws(one, region, loop) for one in costs):
        return Clear("the forward passes outside of the training loop take no batch of a loader")
    return finding(
        facts,
        Rule(CODE, NAME, scope="run"),
        region,
        Claim(
            phase="forward",
            share=predict.recoverable(region.share, least=0.7),
            remedy=Remedy("code", (), "what these passes are for is done less often"),
            say=(
                f"{percent(region.share)} of the time goes into forward passes outside of the "
                f"training loop, which no backward pass follows: {texts_of(facts, region.costs)} "
                f"at {at(region.line)} passes data through the model again. Do it once at the end "
                "instead of every epoch, less often, or on a part of the data."
            ),
        ),
    )


def _draws(cost: Cost, region: Region, loop: tuple[str, str]) -> bool:
    """Tell whether batches are taken where these passes are: they go through a whole data set.

    An agent that acts between its updates also runs its model there, and has to.
    """
    home = (region.line.file, region.line.function)
    taking = cost.phase == "data_wait" and not _is_below(cost, loop)
    return taking and any((at.file, at.function) == home for at in cost.stack)


def _is_below(cost: Cost, loop: tuple[str, str]) -> bool:
    return any((at.file, at.function) == loop for at in cost.stack)
