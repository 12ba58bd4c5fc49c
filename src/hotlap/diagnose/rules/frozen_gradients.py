"""# HL313 frozen-gradients: gradients are computed for parameters that no optimizer updates

**What.** Part of the model is not trained (a frozen backbone, say), but its parameters still
require gradients, so the backward pass goes through all of it for nothing.

**How it is measured.** Parameters that require gradients against those that the optimizers hold,
and the backward pass's exclusive share of the step.

**When it is wrong.** Where another program reads those gradients (a saliency map, a penalty).

**What to do.** `requires_grad_(False)` on what is not trained; its forward pass under
`torch.no_grad()`.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import percent
from hotlap.diagnose.shares import step_share
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL313"
NAME = "frozen-gradients"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge gradients that nobody uses."""
    graded = facts.defaults.get("trainable_elements")
    unheld = facts.defaults.get("unheld_elements")
    backward = step_share(facts, "backward")
    if not graded or unheld is None or backward is None:
        return Unknown("the model's parameters were not looked at")
    part = unheld / graded
    if part < 0.2 or not worth(facts, part * backward):
        return Clear("the optimizers hold what gets gradients")
    region = select(costs_of(facts), lambda one: one.phase == "backward")
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="backward",
            share=Bounds(0.5 * part * backward, 0.95 * backward),
            remedy=Remedy("code", (), "nothing that is trained"),
            say=(
                f"{percent(part)} of the parameters that require gradients belong to no optimizer "
                f"(a frozen backbone), yet the backward pass, {percent(backward)} of the time, "
                f"computes gradients for them. Call requires_grad_(False) on them and run that "
                f"part under no_grad."
            ),
            evidence=(Evidence("not in an optimizer", round(part, 3), "share of parameters"),),
        ),
    )
