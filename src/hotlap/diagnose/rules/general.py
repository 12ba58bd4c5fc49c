"""# HL901 general: much of the run is spent at one place, whatever it is

**What.** No rule knows this cause by name; the profile says how much of the run goes there, in
which phase, and whether the thread works, is blocked or waits for a core.

**How it is measured.** Sampled stacks on the scale of the run's wall time.

**When it is wrong.** Where the place is simply the work that the training is for. Lines that are
the model's own arithmetic are left out, and a rule with evidence of its own outranks this one.

**What to do.** Look at the line: can it be done once, less often, on whole tensors, or elsewhere?
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, growing, state_of, worth
from hotlap.diagnose.compute import MODEL_PHASES, is_models_own
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import Region, by_function, region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.step_lines import framework_lines
from hotlap.diagnose.work import kind_of, region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL901"
NAME = "general"
_STATES = {
    "working": "working",
    "blocked": "blocked",
    "runqueue": "waiting for a core",
    "unknown": "in a state that this kernel does not tell",
}


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Name the dearest place that is not the model's own arithmetic."""
    costs = costs_of(facts)
    if not costs:
        return Unknown("no stacks were sampled")
    best: Region | None = None
    trainers = framework_lines(costs)
    odd = [one for one in costs if _odd(facts, one) and not _is_trained(one, trainers)]
    for phase in sorted({one.phase for one in odd}):
        for group in by_function(one for one in odd if one.phase == phase):
            region = region_of(group, costs)
            if region is not None and (best is None or region.share > best.share):
                best = region
    if best is None or not worth(facts, best.share):
        return Clear("no place stands out beside the model's own arithmetic")
    kind = region_kind(best.costs)
    factor = growing(best.costs, costs)
    rhythm = "growing as the run goes on" if factor is not None and factor > 1.5 else "throughout"
    advice = kind.advice if kind else "do it once, less often, or on whole tensors"
    return finding(
        facts,
        Rule(CODE, NAME),
        best,
        Claim(
            phase=best.top.phase,
            share=predict.recoverable(best.share, least=0.65),
            remedy=Remedy("code", (), "what the line is for"),
            specific=False,
            say=(
                f"{percent(best.share)} of the time is spent at {at(best.line)} in "
                f"{best.top.phase}, {_STATES[state_of(best)]}, {rhythm}: "
                f"{texts_of(facts, best.costs)}{f', {kind.noun}' if kind else ''}. To mend it, "
                f"{advice}."
            ),
            evidence=(Evidence("late against early", factor, "times"),),
        ),
    )


def _is_trained(cost: Cost, trainers: frozenset[str]) -> bool:
    return cost.phase in MODEL_PHASES and cost.key in trainers


def _odd(facts: Facts, cost: Cost) -> bool:
    if cost.phase in ("evaluation", "start_up", "compile"):
        return False  # judged by their own rules, which know what is usual there
    if cost.phase in (*MODEL_PHASES, "other"):
        return not is_models_own(facts, cost) and (
            cost.phase in ("forward", "other") or kind_of(cost) is not None
        )
    return True
