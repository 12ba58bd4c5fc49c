"""Predictions of a whole run and of its steps: a diagnosis speaks of one, runs measure the other.

Where a run is short its start and its end are a good part of it, which no knob makes shorter.
"""

from __future__ import annotations

from typing import Final

from hotlap.values.comparison import Interval
from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds
from hotlap.values.shares import base_of, run_share

_MEASURED: Final = ("steps", "evaluation", "checkpoint", "epoch_edge")
"""Run phases that lie between the steps that runs of an arm measure."""
_LEAST: Final = 0.01


def of_steps(predicted: Bounds, facts: Facts) -> Bounds:
    """Return a predicted speed-up of the run as one of the steps and of what lies between them."""
    inside = inside_share(facts)
    if inside is None:
        return predicted
    low, high = (
        None if one is None else inside / max(_LEAST, 1.0 / one - (1.0 - inside))
        for one in (predicted.low, predicted.high)
    )
    return Bounds(low, high)


def of_run(gain: Interval, facts: Facts) -> Interval | None:
    """Return a speed-up of the steps as one of the whole run; None where its length is unknown."""
    inside = inside_share(facts)
    if inside is None:
        return None
    low, mid, high = (
        1.0 / (1.0 - inside + inside / one) for one in (gain.low, gain.mid, gain.high)
    )
    return Interval(low, mid, high)


def inside_share(facts: Facts) -> float | None:
    """Return the part (0-1) of a whole run that is measured; None where no whole run was seen."""
    base = base_of(facts)
    if base is None or not base.whole:
        return None
    shares = [run_share(facts, name) or 0.0 for name in _MEASURED]
    return min(1.0, sum(shares)) or None
