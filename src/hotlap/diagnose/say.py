"""Sentences that findings share: one place, one percentage, one way to say it."""

from __future__ import annotations

from collections.abc import Sequence

from hotlap.diagnose.costs import Cost
from hotlap.values.facts import Facts, SourceLine
from hotlap.values.finding import Location
from hotlap.values.record import Place

_LONGEST = 90

_DOING = {
    "working": "working on a core",
    "blocked": "blocked, waiting for something else",
    "runqueue": "waiting for a free core",
    "unknown": "",
}


def percent(share: float) -> str:
    """Return a share as a percentage in words."""
    return "under 1 %" if share < 0.01 else f"{share * 100:.0f} %"


def at(place: Place) -> str:
    """Return ``file:line (function)``."""
    return f"{place.file}:{place.line} ({place.function})"


def code(text: str | None) -> str:
    """Return source text in backquotes, shortened, or nothing."""
    if not text:
        return ""
    flat = " ".join(text.split())
    return f"`{flat if len(flat) <= _LONGEST else flat[: _LONGEST - 1] + '…'}`"


def doing(cost: Cost) -> str:
    """Return what the thread does there, in words; empty when it is not known."""
    return _DOING[cost.state]


def line_of(facts: Facts, place: Place) -> SourceLine | None:
    """Return the source line of a place, if it could be read."""
    return facts.source.get(f"{place.file}:{place.line}")


def text_of(facts: Facts, cost: Cost) -> str:
    """Return the source text to quote for a cost: the expression, else the line."""
    line = line_of(facts, cost.place)
    return code(cost.expression or (line.text if line else None)) or "the code"


def texts_of(facts: Facts, costs: Sequence[Cost]) -> str:
    """Return the source texts that stand for several lines: the dearest, at most three."""
    whole = sum(one.ns for one in costs)
    found: list[str] = []
    for one in costs:
        text = text_of(facts, one)
        if text not in found and one.ns >= 0.15 * whole:
            found.append(text)
    return ", ".join(found[:3]) or text_of(facts, costs[0])


def location(place: Place, share: float | None = None) -> Location:
    """Return a place as a finding's location."""
    return Location(place.file, place.line, place.function, share)
