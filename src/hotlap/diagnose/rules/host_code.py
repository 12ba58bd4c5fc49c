"""# HL402 host-code: the user's own code between the phases of a step takes long

**What.** Metrics, bookkeeping, copies, conversions or plain Python between the passes of every
step, during which the model stands still.

**How it is measured.** The exclusive phase `other` (what lies between the passes), by sampled
stacks.

**When it is wrong.** A loss that is computed by plain functions lies here too; lines whose
operators are the model's arithmetic are left out.

**What to do.** Do it every n steps, on whole tensors, once ahead, or not at all.
"""

from __future__ import annotations

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.compute import in_loop, is_models_own
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import Region, region_of
from hotlap.diagnose.say import at, doing, percent, texts_of
from hotlap.diagnose.step_lines import is_from_header, step_line, training_function
from hotlap.diagnose.work import kind_of, region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL402"
NAME = "host-code"
_BETWEEN = "the code between the passes of a step"
_LOGS = ("printing", "fsync", "plotting")


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the user's code between the passes."""
    costs = costs_of(facts)
    if not costs:
        return Unknown("no stacks were sampled")
    between = [one for one in costs if _between(one) and not is_models_own(facts, one)]
    region = _largest(between, costs)
    if region is None or not worth(facts, region.share):
        return Clear("the code between the passes takes little time")
    top = region.top
    kind = region_kind(region.costs)
    what = kind.noun if kind else doing(top)
    advice = kind.advice if kind else "do it every n steps, on whole tensors, or once ahead"
    feeds = is_from_header(facts, region.top, costs)
    where = "the next batch, which the training waits for" if feeds else _BETWEEN
    loop = in_loop(facts, top)
    slow_loop = (
        f" in a Python loop at line {loop}" if loop is not None and region.line.line != loop else ""
    )
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="data_wait" if feeds else top.phase,
            share=predict.recoverable(region.share, least=0.9),
            remedy=Remedy("code", (), "when the work is done"),
            say=(
                f"{percent(region.share)} of the time goes into {where}: "
                f"{texts_of(facts, region.costs)} at {at(region.line)}, {what}{slow_loop}, while "
                "the model "
                f"stands still. To mend it, {advice}."
            ),
            evidence=(Evidence("lines", len(region.costs), "in the profile"),),
        ),
    )


def _between(cost: Cost) -> bool:
    if cost.role != "trainer" or cost.phase not in ("other", "transfer"):
        return False
    kind = kind_of(cost)
    return kind is None or kind.name not in _LOGS


def _largest(costs: list[Cost], everything: tuple[Cost, ...]) -> Region | None:
    """Return the dearest group of lines that one line of the training loop leads to."""
    loop = training_function(everything)
    groups: dict[Place, list[Cost]] = {}
    for one in costs:
        groups.setdefault(step_line(one, loop), []).append(one)
    chosen = max(groups.values(), key=lambda group: sum(x.ns for x in group), default=[])
    return region_of(chosen, everything)
