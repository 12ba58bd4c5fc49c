"""# HL703 start-up: the script works long before its first step

**What.** Scanning, hashing, parsing or pre-computing data, building vocabularies, or heavy
imports, before anything is learned.

**How it is measured.** Wall time to the first step, by sampled stacks of the user's lines. What
torch's own import takes is not counted.

**When it is wrong.** In a run of days a minute of start-up is nothing: the finding is given only
where the trial saw the whole run, or the horizon is known.

**What to do.** Keep the result on disk, do it lazily, or faster.
"""

from __future__ import annotations

from dataclasses import replace

from hotlap.diagnose import predict
from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import Cost, base_of, costs_of
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.work import region_kind
from hotlap.values.facts import Facts
from hotlap.values.finding import Clear, Finding, Remedy, Unknown

CODE = "HL703"
NAME = "start-up"
_MUCH = 0.25
"""Share of what was seen, from which on start-up is named even if the run may go on for long."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge what happens before the first step."""
    base = base_of(facts)
    if base is None:
        return Unknown("run phases were not measured")
    # Where the run's end was not seen, against what was seen: a bound from above.
    seen = replace(facts, whole_run=True)
    region = select(costs_of(seen), _works)
    if region is not None and not base.whole and region.share < _MUCH:
        return Unknown("the length of the whole run is not known")
    if region is None or not worth(facts, region.share):
        return Clear("the script's own work before the first step is short")
    kind = region_kind(region.costs)
    line = region.line
    way = f", called at {at(region.hot)}" if line.function != region.hot.function else ""
    what = f", {kind.noun}" if kind else ""
    advice = kind.advice if kind else "keep the result on disk and load it, or do it lazily"
    return finding(
        facts,
        Rule(CODE, NAME, scope="run"),
        region,
        Claim(
            phase="start_up",
            first=line,
            share=predict.recoverable(region.share, least=0.85 if base.whole else 0.0),
            remedy=Remedy("code", (), "nothing, if the result is the same"),
            say=(
                f"{percent(region.share)} of the run passes before the first step (start-up) in "
                f"{texts_of(facts, region.costs)} at {at(line)}{way}{what}. To mend it, {advice}."
            ),
        ),
    )


def _works(cost: Cost) -> bool:
    if cost.phase != "start_up" or cost.role != "trainer":
        return False
    if cost.spent_in("threading.") > 0.5:
        return False  # it waits for another thread, whose lines were not looked at
    importing = sum(ns for leaf, ns in cost.leaves if "importlib" in leaf)
    text = cost.expression or ""
    # What is imported also runs code of its own (classes, patterns): a part of it tells the whole.
    imports = importing >= 0.15 * sum(ns for _, ns in cost.leaves)
    return not imports and not text.startswith(("import ", "from "))
