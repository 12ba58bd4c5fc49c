"""What the run would gain if a cause were gone, with bounds.

A cause that costs a share ``s`` of the run's wall time and is taken away to between ``least`` and
``most`` of it leaves ``1 - s * removed`` of the run (Amdahl, AFIPS 1967). A cause in the input is
capped by the next ceiling: a step is never shorter than what the model needs (DS-Analyzer,
Mohan et al., VLDB 2021: speed = min of fetch, prepare and compute). The bounds are widened by the
noise floor, since a measurement of the gain would be.

What interrupts the steps also makes the rest of them slower: caches are cold, pages are mapped
anew, threads have gone to sleep. No clock of the slow run shows it; what other programs have shown
is in the bounds.
"""

from __future__ import annotations

from hotlap.diagnose.shares import floor_of
from hotlap.values.facts import Facts, WhatIf
from hotlap.values.finding import Bounds

_BESIDE = (0.05, 0.20)
"""Part of the rest of the steps that goes with a cause: docs/concepts/prediction.md."""
_WIDEST = 0.10
"""On a noisier machine the interval of a comparison is narrowed by repeating it."""
_OF_THE_FLOOR = 0.3
"""Part of the noise floor to either side: it is of windows, and whole runs are compared."""


def recoverable(share: float, least: float = 0.7, most: float = 1.0) -> Bounds:
    """Return bounds of the recoverable share. least, most: parts (0-1) of it that go away."""
    return Bounds(max(0.0, share * least), min(0.99, share * most))


def speedup(facts: Facts, share: Bounds, rest: float = 0.0) -> Bounds:
    """Return bounds of the run's speed-up for a recoverable share, the noise floor included.

    rest: share of the run (0-1) that the cause interrupts, and that is faster without it.
    """
    if share.low is None or share.high is None:
        return Bounds(None, None)
    floor = min(_WIDEST, floor_of(facts)) * _OF_THE_FLOOR
    least, most = (
        one + part * rest for one, part in zip((share.low, share.high), _BESIDE, strict=True)
    )
    low = 1.0 / (1.0 - min(0.99, least)) * (1.0 - floor)
    high = 1.0 / (1.0 - min(0.99, most)) * (1.0 + floor)
    return Bounds(max(1.0, low), max(1.0, high))


def by_what_if(what_if: WhatIf, steps_share: float) -> Bounds:
    """Return the recoverable share that an experiment on the steps has shown.

    steps_share: share of the steps in the whole (0-1); a ratio r of the steps recovers
    ``steps_share * (1 - 1 / r)``.
    """
    low = steps_share * (1.0 - 1.0 / max(1.0, what_if.low))
    high = steps_share * (1.0 - 1.0 / max(1.0, what_if.high))
    return Bounds(low, high)


def together(facts: Facts, shares: list[Bounds], most: float = 1.0) -> Bounds:
    """Return the speed-up if all causes were gone; exclusive shares add up.

    most: share of the run (0-1) that they take together.
    """
    if not shares:
        return Bounds(None, None)
    low = sum(one.low or 0.0 for one in shares)
    high = sum(one.high or 0.0 for one in shares)
    high = min(0.98, high, max(most, low))
    return speedup(facts, Bounds(min(0.97, low), high))
