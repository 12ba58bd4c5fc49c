"""# HL312 repeated-passes: the model runs more often per step than the training needs

**What.** The same call of the model stands at two places of a step, often once for the loss and
once for a metric or a print.

**How it is measured.** Forward passes per step, and sampled stacks whose source text is the same
call at different lines.

**When it is wrong.** Contrastive losses, critics and teachers run a model twice on purpose, on
other inputs: their calls differ.

**What to do.** Keep the first result and use it again (detached).
"""

from __future__ import annotations

import re
from collections import defaultdict

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, code, percent
from hotlap.diagnose.step_lines import step_line, training_function
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL312"
NAME = "repeated-passes"
_CALL = re.compile(r"[A-Za-z_][\w.]*\([^()]+\)")
"""A call with arguments and without another call among them."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge forward passes per step."""
    costs = [one for one in costs_of(facts) if one.phase == "forward" and one.role == "trainer"]
    if not costs:
        return Unknown("no stack of a forward pass was seen")
    loop = training_function(costs_of(facts))
    for call, places in _calls(facts, costs, loop).items():
        extra = sorted(places, key=lambda place: place.line)[1:]
        share = sum(places.values()) - max(places.values())
        if not extra or not worth(facts, share):
            continue
        region = region_of([one for one in costs if step_line(one, loop) in extra], costs)
        passes = facts.counts.get("forwards_per_step")
        return finding(
            facts,
            Rule(CODE, NAME),
            region,
            Claim(
                phase="forward",
                share=predict.recoverable(share, least=0.8),
                first=extra[0],
                remedy=Remedy("code", (), "a metric sees the same output instead of a new one"),
                say=(
                    f"The same forward pass {code(call)} runs {len(places)} times in each step, "
                    f"again at {at(extra[0])}, and the repeats take {percent(share)} of the time. "
                    f"Run the model once and reuse its output (detached)."
                ),
                evidence=(Evidence("forward passes", passes, "per step"),),
            ),
        )
    return Clear("no call of a model stands twice in a step")


def _calls(
    facts: Facts, costs: list[Cost], loop: tuple[str, str] | None
) -> dict[str, dict[Place, float]]:
    """Return calls that stand in lines of the training loop: to the lines, with their shares."""
    found: dict[str, dict[Place, float]] = defaultdict(lambda: defaultdict(float))
    for one in costs:
        outer = step_line(one, loop)
        line = facts.source.get(f"{outer.file}:{outer.line}")
        for call in set(_CALL.findall(line.text)) if line is not None else ():
            found[call][outer] += one.share
    return {call: dict(places) for call, places in found.items() if len(places) > 1}
