"""# HL328 unused-rows: a layer computes rows on which nothing that is trained depends

**What.** A model computes something for all positions or samples, and only some of them count: the
loss ignores the others (`ignore_index`, a mask), or every expert of a mixture answers for every
position and all answers but one are multiplied by zero. Forward and backward pass of the others
are made for nothing.

**How it is measured.** In two steps of the watched trial the gradients of linear layers and
convolutions are looked at. A row of a linear layer's output depends on that row of its input alone;
where its whole gradient is zero, it was computed for nothing. The work at that line, forward and
backward, is taken from the operators' times.

**When it is wrong.** Where such rows are used without a gradient (a metric, a score that chooses).
Where they are zero by chance of their values: a margin loss that is satisfied gives no gradient
either, and which samples those are is known only afterwards. Where less work is not less time: very
small layers.

**What to do.** Select the rows that count before the layer (`hidden[mask]`), and put the results
where they belong, or give the loss the selected targets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotlap.diagnose.build import Claim, Rule, finding, worth
from hotlap.diagnose.costs import costs_of
from hotlap.diagnose.operators import all_operators, is_heavy
from hotlap.diagnose.regions import select
from hotlap.diagnose.say import at, code, percent
from hotlap.diagnose.shares import step_share
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Clear, Evidence, Finding, Remedy, Unknown
from hotlap.values.record import Place

CODE = "HL328"
NAME = "unused-rows"
_LEAST = 0.5
"""Part of the rows below which selecting them costs about what it spares."""
_KEPT = 0.8
"""Part of the work for nothing that goes: fewer rows in a product are not as much less time."""


def check(facts: Facts) -> Finding | Clear | Unknown:
    """Judge the gradients that come back to linear layers and convolutions."""
    rows = facts.defaults.get("unused_rows")
    model = (step_share(facts, "forward") or 0.0) + (step_share(facts, "backward") or 0.0)
    if not rows:
        return Clear("no row without a gradient was seen")
    if not all_operators(facts):
        return Unknown("operators were not profiled")
    padding = _padding(facts)
    known = [one for one in rows if one[5] >= _LEAST and one[5] > padding + 0.05]
    if not known:
        return Clear("few rows have no gradient, or those that have none are padding")
    lost, most = (part * model for part in _for_nothing(facts, known))
    if not worth(facts, lost):
        return Clear("what is computed for nothing takes little time")
    first = known[0]
    keys = {(one[0], one[1]) for one in known}
    region = select(
        costs_of(facts),
        lambda one: one.phase == "forward" and (one.place.file, one.place.line) in keys,
    )
    return finding(
        facts,
        Rule(CODE, NAME),
        region,
        Claim(
            phase="forward",
            share=Bounds(_KEPT * (lost + most) / 2, min(0.97 * model, most)),
            first=Place(*first[:3]),
            remedy=Remedy("code", (), "nothing: these rows have no part in any gradient"),
            say=_words(first, _expression(facts, first)),
            reason=True,
            evidence=(
                Evidence("rows without a gradient", round(first[4] / first[3], 3), "share of rows"),
                Evidence("rows looked at", first[3], "in two steps"),
            ),
        ),
    )


def _words(first: Sequence[Any], expression: str | None) -> str:
    kind = "positions" if first[6] > 2 else "rows"
    return (
        f"{code(expression) or 'A layer'} at {at(Place(*first[:3]))} computes all {kind}, but for "
        f"{percent(first[5])} of that work the gradient that comes back is zero: nothing that is "
        f"trained depends on these {kind}, so their forward and backward pass is thrown away. "
        f"Select the {kind} that count before this call (those that the loss does not ignore; "
        f"for an expert, those that are routed to it) and compute only the selected ones."
    )


def _expression(facts: Facts, row: Sequence[Any]) -> str | None:
    """Return the source text that takes most of a line's forward pass."""
    here = [
        one
        for one in costs_of(facts)
        if one.phase == "forward" and (one.place.file, one.place.line) == (row[0], row[1])
    ]
    return max(here, key=lambda one: one.ns).expression if here else None


def _for_nothing(facts: Facts, rows: Sequence[Sequence[Any]]) -> tuple[float, float]:
    """Return which part (0-1) of the model's operators is for nothing: for certain, and at most.

    For certain: the layers. At most also what the same function does afterwards, with their rows or
    with others', other layers left out. Backward operators of which it is not known whose they are
    are shared out.
    """
    least = most = whole = 0.0
    for one in all_operators(facts):
        place = one.forward if one.phase == "backward" else one.place
        if one.phase not in ("forward", "backward") or place is None:
            continue
        whole += one.ns
        before = [row for row in rows if row[0] == place.file and row[1] <= place.line]
        row = max(before, key=lambda each: int(each[1]), default=None)
        if row is None:
            continue
        if row[1] == place.line:
            least += row[5] * one.ns
            most += row[5] * one.ns
        elif row[2] == place.function and not is_heavy(one.name):
            most += row[5] * one.ns
    return (least / whole, most / whole) if whole else (0.0, 0.0)


def _padding(facts: Facts) -> float:
    """Return the part (0-1) of a batch that is padding; 0 where none is known."""
    width, mean = facts.defaults.get("padded_width"), facts.defaults.get("padded_mean")
    return 1.0 - mean / width if width and mean else 0.0
