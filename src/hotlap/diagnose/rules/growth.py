"""# HL601 growth: steps become slower as the run goes on

**What.** Something grows with every step: a list that is walked over, a graph that is kept, a
tensor that is extended, a file that is read again.

**How it is measured.** A slope test over all step times (Theil and Sen: the median of slopes
between pairs, with Kendall's test against chance), and the lines whose share grows from the first
third of the run to the last.

**When it is wrong.** A machine that becomes busy, or inputs that become longer by design.

**What to do.** Keep numbers instead of tensors with their graphs (`.detach()`, `.item()`), bound
the history, allocate ahead.
"""

from __future__ import annotations

from hotlap.diagnose.build import Claim, Rule, finding, gained_share, growing, worth
from hotlap.diagnose.compute import is_models_own
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.regions import region_of
from hotlap.diagnose.say import at, percent, texts_of
from hotlap.diagnose.shares import run_share
from hotlap.diagnose.step_lines import training_function
from hotlap.stats.trend import trend
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown

CODE = "HL601"
NAME = "growth"
_LEAST_STEPS = 60
_LEAST_GROWTH = 1.3
_EXPLAINED = 0.15
"""Of what steps have grown by, seen in the lines that grow: else all grow alike. Much of the growth
lies within the first and the last third of the time, which are compared."""
_GAINED = 0.05


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the trend of the step time."""
    series = facts.step_series
    if len(series) < _LEAST_STEPS:
        return Unknown(f"{len(series)} steps are too few to tell a trend")
    found = trend(series[len(series) // 20 :])
    if not found.certain or found.growth < _LEAST_GROWTH:
        return Clear("the step time does not grow")
    over = 1.0 - found.start / found.mean
    share = over * (run_share(facts, "steps") or 1.0)
    if not worth(facts, share):
        return Clear("the growth of the step time costs little")
    costs = [one for one in costs_of(facts) if one.role == "trainer"]
    grown = _with_neighbours(costs, _growing(costs))
    region = region_of(grown, costs_of(facts))
    gained = gained_share(grown, costs)
    if region is None or gained < max(_GAINED, _EXPLAINED * (1.0 - 1.0 / found.growth)):
        return Unknown(
            f"steps became {found.growth:.1f} times slower, but no line more than the others: a "
            "processor that slowed down, or other programs, would do the same"
        )
    recovered = Bounds(0.75 * share, min(0.99, 1.15 * share))
    if not any(is_models_own(facts, one) for one in region.costs):
        # What grows is no part of the model: all of it can go, not only what it has grown by.
        most = max(share, region.share)
        recovered = Bounds(0.75 * most, min(0.99, 1.05 * most))
    where = f": {texts_of(facts, region.costs)} at {at(region.line)}"
    return finding(
        facts,
        Rule(CODE, NAME, scope="run"),
        region,
        Claim(
            phase=region.top.phase,
            share=recovered,
            remedy=Remedy("code", (), "nothing, if what is kept is not used"),
            reason=True,
            say=(
                f"Steps become slower as the run goes on, {found.growth:.1f} times from start to "
                "end "
                f"({percent(share)} of the time so far), because something grows with every step"
                f"{where}. Do not keep history or graphs: detach what you store, and bound its "
                "length."
            ),
            evidence=(
                Evidence("step at the start", round(found.start / 1e6, 3), "ms"),
                Evidence("step at the end", round(found.end / 1e6, 3), "ms"),
            ),
        ),
    )


def _growing(costs: list[Cost]) -> list[Cost]:
    """Return the lines that grow most, by what they add: late time minus early time."""

    def added(one: Cost) -> float:
        factor = growing((one,), costs)
        return one.ns * (1.0 - 1.0 / factor) if factor is not None and factor > 1.2 else 0.0

    ranked = sorted(costs, key=added, reverse=True)
    return [one for one in ranked[:3] if added(one) > 0.25 * added(ranked[0]) > 0]


def _with_neighbours(costs: list[Cost], grown: list[Cost]) -> list[Cost]:
    """Return lines that grow with the others of their function, which do the same work in parts.

    Not those of the training loop itself, whose lines are all the parts of a step.
    """
    loop = training_function(costs)
    homes = {(one.place.file, one.place.function) for one in grown} - {loop}
    phases = {one.phase for one in grown}
    beside = [
        one
        for one in costs
        if (one.place.file, one.place.function) in homes and one.phase in phases
    ]
    return [*grown, *(one for one in beside if one not in grown)]
