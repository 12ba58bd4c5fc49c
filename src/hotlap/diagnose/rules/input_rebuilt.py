"""# HL115 input-rebuilt: the training's DataLoader and its data are made anew during the run

**What.** During the run, not only before it, the line that makes the training's DataLoader is
passed again, and reading, parsing or computing its data set is done anew each time.

**How it is measured.** Sampled stacks after the first step in which that line stands.

**When it is wrong.** Where each epoch needs other data and they cannot be made ahead.

**What to do.** Make the data set once and keep it; with Lightning, drop
`reload_dataloaders_every_n_epochs`, or cache the data set in the data module.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.input import remaking
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.shares import training_loader
from hotlap.diagnose.work import region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Finding, Remedy, Unknown

CODE = "HL115"
NAME = "input-rebuilt"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge what is spent on making the loader after the first step."""
    loader = training_loader(facts)
    if loader is None or loader.place is None:
        return Clear("no DataLoader trains")
    costs = costs_of(facts)
    if not costs:
        return Unknown("no stacks were sampled")
    region = region_of(remaking(facts, costs), costs)
    if region is None or not worth(facts, region.share):
        return Clear("the loader is made once, or quickly")
    kind = region_kind(region.costs)
    what = f", {kind.noun}" if kind else ""
    return finding(
        facts,
        Rule(CODE, NAME, scope="run"),
        region,
        Claim(
            phase="epoch_edge",
            share=predict.recoverable(region.share, least=0.9),
            reason=True,
            remedy=Remedy("code", (), "nothing, if the data stay the same"),
            say=(
                f"{percent(region.share)} of the time passes between epochs in making the "
                f"training's DataLoader again ({at(loader.place)}), each time with all its data: "
                f"{texts_of(facts, region.costs)} at {at(region.line)}{what}. Make the data set "
                "once, keep it, and let the loader live through all epochs."
            ),
        ),
    )
