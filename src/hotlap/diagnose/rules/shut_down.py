"""# HL705 run-edges: time after the last step, or at the edges of epochs

**What.** Work of the script's own after training, or between epochs: final passes over the data,
writing results, joining threads, computing statistics.

**How it is measured.** Wall time of these phases by sampled stacks of the user's lines.

**When it is wrong.** What is done once matters less the longer the run is.

**What to do.** Do it less often or in the background, or on less data.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import by_function, region_of
from hotlap.diagnose.say import at, doing, percent, texts_of
from hotlap.diagnose.work import region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Finding, Remedy, Unknown

CODE = "HL705"
NAME = "run-edges"
_NAMES = {"shut_down": "after the last step", "epoch_edge": "between epochs"}


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the user's own work at the edges."""
    costs = costs_of(facts)
    if not costs:
        return Unknown("no stacks were sampled")
    for group in by_function(one for one in costs if _at_an_edge(one)):
        region = region_of(group, costs)
        if region is None or not worth(facts, region.share):
            continue
        top, kind = region.top, region_kind(region.costs)
        what = kind.noun if kind else doing(top)
        advice = kind.advice if kind else "do it less often, or in the background"
        return finding(
            facts,
            Rule(CODE, NAME, scope="epoch" if top.phase == "epoch_edge" else "run"),
            region,
            Claim(
                phase=top.phase,
                share=predict.recoverable(region.share, least=0.75),
                remedy=Remedy("code", (), "when the work is done"),
                say=(
                    f"{percent(region.share)} of the time passes {_NAMES[top.phase]} in "
                    f"{texts_of(facts, region.costs)} at {at(region.line)}, {what}. To mend it, "
                    f"{advice}."
                ),
            ),
        )
    return Clear("the edges of the run and of its epochs are short")


def _at_an_edge(cost: Cost) -> bool:
    if cost.role != "trainer" or cost.phase not in _NAMES:
        return False
    waiting = ("sampler", "multiprocessing", "selectors", "threading", "torch.utils.data")
    return not any(name in leaf for leaf, _ in cost.leaves[:1] for name in waiting)
