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

from collections import defaultdict

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, code, percent
from hotlap.diagnose.step_lines import step_line, training_function
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL312"
NAME = "repeated-passes"


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge forward passes per step."""
    costs = [one for one in costs_of(facts) if one.phase == "forward" and one.role == "trainer"]
    if not costs:
        return Unknown("no stack of a forward pass was seen")
    loop = training_function(costs_of(facts))
    passes = facts.counts.get("forwards_per_step")
    calls: dict[tuple[str, str], dict[Place, float]] = defaultdict(lambda: defaultdict(float))
    for one in costs:
        outer = step_line(one, loop)
        line = facts.source.get(f"{outer.file}:{outer.line}")
        if line is not None and "(" in line.text:
            call = line.text.split("=", 1)[-1].strip()
            calls[outer.file, call][outer] += one.share
    for (_, call), places in calls.items():
        if len(places) < 2:
            continue
        extra = min(places, key=lambda place: places[place])
        share = places[extra]
        if not worth(facts, share):
            continue
        region = region_of([one for one in costs if extra in (one.place, *one.callers)], costs)
        return finding(
            facts,
            Rule(CODE, NAME),
            region,
            Claim(
                phase="forward",
                share=predict.recoverable(share, least=0.8),
                first=extra,
                remedy=Remedy(
                    "code", (), "a metric would see the same output instead of a new one"
                ),
                say=(
                    f"The same forward pass {code(call)} runs twice in each step, again at "
                    f"{at(extra)} "
                    f"for {percent(share)} of the time. Keep the first output and reuse it."
                ),
                evidence=(Evidence("forward passes", passes, "per step"),),
            ),
        )
    return Clear("no call of a model stands twice in a step")
