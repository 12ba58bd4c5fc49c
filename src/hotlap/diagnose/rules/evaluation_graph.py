"""# HL602 evaluation-graph: evaluation builds the graph for gradients that nobody computes

**What.** Without `no_grad` or `inference_mode` every evaluation pass records its graph and keeps
its activations; outputs that are kept keep all of it in memory.

**How it is measured.** Evaluation passes were seen, and nowhere in the script's own source is
gradient recording switched off.

**When it is wrong.** Where a framework does it for the script: then this rule is silent.

**What to do.** Evaluate under `torch.inference_mode()` and keep numbers, not tensors.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import Region, select
from hotlap.diagnose.say import at, percent
from hotlap.diagnose.shares import run_share
from hotlap.diagnose.switches import GRADIENTS_OFF, evaluates_with_gradients
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL602"
NAME = "evaluation-graph"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge gradient recording in evaluation."""
    share = run_share(facts, "evaluation")
    if share is None:
        return Unknown("run phases were not measured")
    if not worth(facts, share):
        return Clear("evaluation takes little time")
    if not facts.settings:
        return Unknown("the script's source was not read")
    if any(one.name in GRADIENTS_OFF for one in facts.settings):
        return Clear("gradient recording is switched off somewhere in the script")
    region = select(costs_of(facts), lambda one: one.phase == "evaluation")
    if region is None:
        return Unknown("no stack of an evaluation was seen")
    if not evaluates_with_gradients(facts, region.costs):
        return Clear("a framework evaluates, which switches gradients off itself")
    line = _call_of_the_model(region)
    return finding(
        facts,
        Rule(CODE, NAME, scope="run"),
        region,
        Claim(
            phase="evaluation",
            first=line,
            share=Bounds(0.05 * share, 0.4 * share),
            remedy=Remedy("code", ("evaluation_without_grad",), "nothing: the same numbers"),
            say=(
                f"Evaluation ({percent(share)} of the time, {at(line)}) runs without "
                f"no_grad, so each pass records a graph for gradients and holds its activations "
                f"in memory. Evaluate under torch.inference_mode() and keep numbers only."
            ),
        ),
    )


def _call_of_the_model(region: Region) -> Place:
    """Return the line that calls the model: the one outside its outermost ``forward``."""
    stack = (region.top.place, *region.top.callers)
    inside = [n for n, place in enumerate(stack) if place.function == "forward"]
    return stack[inside[-1] + 1] if inside and inside[-1] + 1 < len(stack) else region.line
