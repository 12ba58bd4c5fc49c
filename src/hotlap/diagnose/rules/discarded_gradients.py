"""# HL327 discarded-gradients: a backward pass goes on after the last gradient that is used

**What.** A backward pass follows the graph to where it begins. Where that is in another model (the
generator in the discriminator's pass of a GAN, a target network, a teacher), it computes gradients
that are cleared before any optimizer uses them.

**How it is measured.** In some passes of the watched trial each parameter says when its gradient
is done. Gradients that are cleared before their optimizer steps are unused; what a pass takes from
the last used one to the last unused one is time for nothing. Unused gradients on the way to used
ones do not count.

**When it is wrong.** Where the script reads those gradients itself (a saliency map, a norm that is
logged). On a device, whose calls return before their work is done, it is not measured.

**What to do.** `detach()` what comes from the other model before it enters the loss, or compute it
under `torch.no_grad()`.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent
from hotlap.diagnose.shares import step_share
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL327"
NAME = "discarded-gradients"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge what backward passes do after the last gradient that is used."""
    part = facts.defaults.get("discarded_share")
    row = facts.defaults.get("discarded")
    backward = step_share(facts, "backward")
    if part is None or row is None or backward is None:
        return Unknown("the gradients of no backward pass could be followed")
    if not worth(facts, part * backward):
        return Clear("backward passes end with a gradient that is used")
    file, line, function, spent, wasted = row
    place = Place(file, line, function)
    region = select(
        costs_of(facts),
        lambda one: one.phase == "backward" and (one.place.file, one.place.line) == (file, line),
    )
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="backward",
            share=predict.recoverable(part * backward, least=0.8),
            first=place,
            remedy=Remedy("code", (), "nothing: no optimizer saw these gradients"),
            say=(
                f"The backward pass at {at(place)} goes on for {percent(wasted / spent)} of its "
                f"time after the last gradient that an optimizer uses: it also goes through a "
                f"model (a generator, a target network) whose gradients are thrown away by the "
                f"next zero_grad. Call detach() on what comes from that model before the loss, or "
                f"compute it under torch.no_grad()."
            ),
            reason=True,
            evidence=(
                Evidence("for nothing", round(part, 3), "share of all backward passes"),
                Evidence("for nothing at this line", round(wasted / spent, 3), "share of its time"),
            ),
        ),
    )
