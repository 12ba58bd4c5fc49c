"""# HL702 evaluation: validation takes a large part of the run

**What.** The model is evaluated very often, or on very much data, compared with the training
between; or by one rank of several, while the others wait.

**How it is measured.** Wall time in evaluation, exclusive of the steps, by sampled stacks.

**When it is wrong.** A few long evaluations at the end of a short trial look larger than they are
in a long run.

**What to do.** Evaluate every n steps more, on a fixed part of the data, with larger batches,
under `torch.inference_mode()`; give each rank a part of it.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.input import remaking
from hotlap.diagnose.misplaced import saves_beside
from hotlap.diagnose.regions import region_of, select
from hotlap.diagnose.say import at, percent, text_of
from hotlap.diagnose.shares import run_share
from hotlap.diagnose.switches import evaluates_with_gradients
from hotlap.diagnose.work import kind_of
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL702"
NAME = "evaluation"
_MUCH = 0.20
"""A share that nobody plans for: one pass in five of all the time."""
_AFTER = ("compression", "network", "pipes", "sleep", "subprocess")
"""What no evaluation consists of: it comes after one, before the model is told to train again."""
_NAMES = {
    "evaluation": "Evaluation (validation)",
    "epoch_edge": "What the script does with each evaluation (validation)",
}
_ADVICE = {
    "evaluation": "Evaluate less often or on fewer batches",
    "epoch_edge": "Do it rarely, or in the background",
}
_HARDLY = 0.2
"""Of the evaluation of one rank: another rank that spends less does not share it."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the share of evaluation."""
    share = run_share(facts, "evaluation")
    if share is None:
        return Unknown("run phases were not measured")
    costs = costs_of(facts)
    # A framework makes the next epoch's loader before it trains again: that is none of evaluation.
    others = {id(one) for one in remaking(facts, costs) if one.phase == "evaluation"}
    # Nor is saving the model in its evaluation mode.
    others |= {id(one) for one in costs if one.phase == "evaluation" and saves_beside(one)}
    share -= sum(one.share for one in costs if id(one) in others)
    if share < _MUCH:
        return Clear(f"evaluation takes {percent(share)} of the time")
    region = select(costs, lambda one: one.phase == "evaluation" and id(one) not in others)
    if region is not None and evaluates_with_gradients(facts, region.costs):
        return Clear("it runs without no_grad, which is to be mended first (HL602)")
    waiting = region_of([one for one in region.costs if _is_beside(one)] if region else [], costs)
    what, first, phase = "", "", "evaluation"
    if waiting is not None and waiting.share > 0.5 * share:
        kind = kind_of(waiting.top)
        if kind is not None:
            what, first = f", most of it in {kind.noun}", f"To mend it, {kind.advice}. "
            phase = "epoch_edge" if kind.name in _AFTER else phase
    idle = _idle_ranks(facts)
    if idle:
        what += (
            f", on one rank alone, while {idle} other{'s wait' if idle > 1 else ' waits'} for it"
        )
        first += "Give each rank a part (shard) of it, and add the counts up (all_reduce). "
    where = ""
    if region is not None:
        where = f" (entered at {at(region.entry)}, mostly {text_of(facts, region.top)})"
    return finding(
        facts,
        Rule(CODE, NAME, scope="run"),
        region,
        Claim(
            phase=phase,
            share=Bounds(0.6 * share * idle / (1 + idle) if idle else 0.6 * share, 0.98 * share),
            first=region.entry if region else None,
            remedy=Remedy("code", (), "how often, and on how much data, quality is measured"),
            say=(
                f"{_NAMES[phase]} takes {percent(share)} of the time{where}{what}. {first}"
                f"{_ADVICE[phase]}: training stands still meanwhile."
            ),
            evidence=(Evidence("evaluation", round(share, 3), "share of the run"),),
        ),
    )


def _is_beside(cost: Cost) -> bool:
    """Tell whether a line does known work and not mostly the model's own, whose value it reads."""
    return kind_of(cost) is not None and cost.spent_in("torch.nn.") <= 0.5


def _idle_ranks(facts: Facts) -> int:
    """Return how many ranks hardly evaluate while the one that reports speak of does."""
    parts = [one.phases.get("evaluation") for one in facts.run.trainers if one.world_size != 1]
    first, *others = [0 if part is None else part.ns or 0 for part in parts] or [0]
    return sum(1 for ns in others if ns < _HARDLY * first)
