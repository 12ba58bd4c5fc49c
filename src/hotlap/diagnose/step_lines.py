"""The lines of a step: which line of the training loop a cost was called from.

The training loop is the function in which backward passes and optimizer steps are called. A
framework's loop is not the user's; then there is none, and costs stand for themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from hotlap.diagnose.costs import Cost
from hotlap.values.record import Place


def training_function(costs: Sequence[Cost]) -> tuple[str, str] | None:
    """Return file and name of the function that holds the training loop, or None."""
    sums: dict[tuple[str, str], float] = defaultdict(float)
    for one in costs:
        if one.role == "trainer" and one.phase in ("backward", "optimizer"):
            sums[one.place.file, one.place.function] += one.ns
    return max(sums, key=lambda key: sums[key]) if sums else None


def step_line(cost: Cost, function: tuple[str, str] | None) -> Place:
    """Return the line of the training loop that led to a cost; its own line if none did."""
    for place in (cost.place, *cost.callers):
        if (place.file, place.function) == function:
            return place
    return cost.place


def below_step(cost: Cost, function: tuple[str, str] | None) -> tuple[Place, ...]:
    """Return the user's frames below the training loop, from the inside out."""
    found: list[Place] = []
    for place in (cost.place, *cost.callers):
        if (place.file, place.function) == function:
            return tuple(found)
        found.append(place)
    return tuple(found)
