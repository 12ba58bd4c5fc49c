"""# HL316 retained-graph: backward passes go again through graphs that were kept

**What.** `backward(retain_graph=True)` keeps the graph of a pass. Where a later loss still hangs
on it (a hidden state carried from chunk to chunk, a generator's output in the critic's loss),
the next backward pass goes through all of it once more, and gets longer with every pass.

**How it is measured.** The argument is read from the source at a line where samples of the
backward pass lie; more than one backward pass is made in a step; and the backward pass takes more
than three times the forward pass. It takes one to three times as long where each operator is gone
through once (two gradients for one product, Griewank and Walther, Evaluating Derivatives, 2008).

**When it is wrong.** Where the gradients through the older parts of the graph are wanted (full
backpropagation through time): then one backward pass over the sum of the losses gives the same
gradients at the cost of one.

**What to do.** Detach what is carried over (`state = state.detach()`), or add the losses up and go
backward once.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.compute import LONGEST_BACKWARD
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import Region, select
from hotlap.diagnose.say import at, percent
from hotlap.diagnose.shares import step_share
from hotlap.diagnose.switches import truthy
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL316"
NAME = "retained-graph"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge backward passes over graphs that were kept."""
    kept = [one.place for one in facts.settings if one.name == "retain_graph" and truthy(one.value)]
    if not kept:
        return Clear("no graph is kept with retain_graph")
    passes = facts.counts.get("backwards_per_step")
    forward, backward = step_share(facts, "forward"), step_share(facts, "backward")
    if passes is None or not forward or backward is None:
        return Unknown("forward and backward passes were not measured")
    if passes < 1.5:
        return Clear("one backward pass a step: nothing goes through the kept graph again")
    over = Bounds(max(0.0, backward - LONGEST_BACKWARD * forward), backward - forward)
    if not worth(facts, over.low):
        return Clear("the backward passes take no longer than going through a graph once")
    where, region = _where(facts, kept)
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="backward",
            share=over,
            first=where,
            remedy=Remedy("code", (), "no gradient flows into what came before, where it is cut"),
            say=(
                f"`backward(retain_graph=True)` at {at(where)} keeps the graph, and each of the "
                f"{passes:.0f} backward passes of a step goes again through what the ones before "
                f"it have kept: they take {percent(backward)} of the time, "
                f"{backward / forward:.1f} times the forward pass (1 to {LONGEST_BACKWARD:.0f} "
                "times is usual). Detach the state carried over, or sum the losses and go backward "
                "once."
            ),
            evidence=(
                Evidence("backward passes", round(passes, 1), "per step"),
                Evidence("backward by forward", round(backward / forward, 2), "times"),
            ),
        ),
    )


def _where(facts: Facts, kept: list[Place]) -> tuple[Place, Region | None]:
    """Return the call that keeps most, by the samples at its line, and the region of all."""
    lines = {(one.file, one.line) for one in kept}
    region = select(
        costs_of(facts),
        lambda one: one.phase == "backward" and (one.place.file, one.place.line) in lines,
    )
    return (region.top.place if region is not None else kept[0]), region
