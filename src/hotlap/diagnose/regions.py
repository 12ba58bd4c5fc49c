"""Lines that belong together: where a cost is entered, and where in it the time really goes.

The profile knows for every sample the user's whole stack. So each line has an *own* cost and an
*inclusive* one: all samples in whose stack it stands.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from hotlap.diagnose.costs import Cost
from hotlap.values.record import Place

_MOST = 0.5
_ENTRY = 0.8
_CALLS = 0.15
"""With less than this part of its inclusive cost as its own, a line does nothing but call."""
_STANDS_OUT = 0.25
"""A line with less than this part of a function's work does not stand for it: its call does."""


@dataclass(frozen=True)
class Region:
    """Costs of one kind, with the lines that stand for them.

    share: of the base. hot: the deepest line that holds at least half of it (else the deepest
    that holds most). line: where the work is done, for a reader: hot, or where that does nothing
    but call, the costliest line of the function that holds most. entry: the outermost line that
    leads here and to little else.
    """

    costs: tuple[Cost, ...]
    share: float
    hot: Place
    hot_share: float
    line: Place
    line_share: float
    entry: Place

    @property
    def top(self) -> Cost:
        """Return the costliest line."""
        return self.costs[0]

    @property
    def keys(self) -> frozenset[str]:
        """Return ``file:line`` of every line in it."""
        return frozenset(one.key for one in self.costs)

    def state_share(self, name: str) -> float | None:
        """Return the share of ``working``, ``blocked`` or ``runqueue``; None if not known."""
        known = [(getattr(one, name), one.ns) for one in self.costs]
        weighed = [(share, ns) for share, ns in known if share is not None]
        whole = sum(ns for _, ns in weighed)
        return sum(share * ns for share, ns in weighed) / whole if whole else None


def region_of(costs: Iterable[Cost], everything: Sequence[Cost]) -> Region | None:
    """Return the region that these costs make, seen against all costs of the run.

    None where there are none.
    """
    chosen = sorted(costs, key=lambda one: -one.ns)
    if not chosen:
        return None
    whole = sum(one.ns for one in chosen)
    hot, hot_share = _hot(chosen, whole)
    own = _own(chosen, hot) / whole
    busiest = _busiest(chosen, whole) if own < _CALLS * hot_share else None
    return Region(
        costs=tuple(chosen),
        share=min(1.0, sum(one.share for one in chosen)),
        hot=hot,
        hot_share=hot_share,
        line=busiest or hot,
        line_share=_own(chosen, busiest) / whole if busiest else hot_share,
        entry=_entry(chosen, everything, whole, hot),
    )


def select(costs: Sequence[Cost], wanted: Callable[[Cost], bool]) -> Region | None:
    """Return the region of all costs that are wanted."""
    return region_of([one for one in costs if wanted(one)], costs)


def _own(costs: Sequence[Cost], line: Place) -> float:
    return sum(one.ns for one in costs if one.place == line)


def _busiest(costs: Sequence[Cost], whole: float) -> Place | None:
    groups: dict[tuple[str, str], list[Cost]] = defaultdict(list)
    for one in costs:
        groups[one.place.file, _home(one)].append(one)
    most = max(groups.values(), key=lambda group: sum(one.ns for one in group))
    if sum(one.ns for one in most) < _MOST * whole:
        return None
    line = max(most, key=lambda one: one.ns).place
    return line if _own(costs, line) >= _STANDS_OUT * whole else None


def _home(cost: Cost) -> str:
    """Return the function that a line belongs to for a reader: a comprehension to the one around
    it."""
    for place in cost.stack:
        if place.function == "<module>" or not place.function.startswith("<"):
            return place.function
    return cost.place.function


def by_function(costs: Iterable[Cost]) -> list[list[Cost]]:
    """Return the costs grouped by the function that they lie in, greatest group first."""
    groups: dict[tuple[str, str], list[Cost]] = defaultdict(list)
    for one in costs:
        groups[one.place.file, one.place.function].append(one)
    return sorted(groups.values(), key=lambda group: -sum(one.ns for one in group))


def _hot(costs: Sequence[Cost], whole: float) -> tuple[Place, float]:
    inclusive: dict[Place, float] = defaultdict(float)
    depth: dict[Place, int] = {}
    for one in costs:
        stack = one.stack
        for index, place in enumerate(stack):
            inclusive[place] += one.ns
            depth[place] = max(depth.get(place, 0), len(stack) - index)
    holding = [place for place, ns in inclusive.items() if ns >= _MOST * whole]
    if not holding:
        largest = max(inclusive, key=lambda place: inclusive[place])
        return largest, inclusive[largest] / whole
    deepest = max(holding, key=lambda place: (depth[place], inclusive[place]))
    return deepest, inclusive[deepest] / whole


def _entry(costs: Sequence[Cost], everything: Sequence[Cost], whole: float, hot: Place) -> Place:
    mine = {id(one) for one in costs}
    elsewhere: dict[Place, float] = defaultdict(float)
    for one in everything:
        if id(one) not in mine:
            for place in one.stack:
                elsewhere[place] += one.ns
    inclusive: dict[Place, float] = defaultdict(float)
    for one in costs:
        for place in one.stack:
            inclusive[place] += one.ns
    for place in reversed(costs[0].stack):
        if inclusive[place] >= _ENTRY * whole and elsewhere[place] <= 0.25 * inclusive[place]:
            return place
    return hot
