"""Loops in the user's source around a cost: what is done again and again within one step."""

from __future__ import annotations

from typing import Final

from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.step_lines import below_step, step_line
from hotlap.values.facts import Facts
from hotlap.values.record import Place

_COMPREHENSIONS: Final = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")
"""Functions of their own before Python 3.12."""


def loop_around(facts: Facts, cost: Cost, training: tuple[str, str] | None) -> Place | None:
    """Return the innermost loop around a cost, other than the training loop itself.

    In the training loop's own function only loops within loops count: a step is one turn of an
    outer one.
    """
    for place in below_step(cost, training):
        if place.function in _COMPREHENSIONS:
            return place
        line = facts.source.get(f"{place.file}:{place.line}")
        if line is not None and line.loops:
            return Place(place.file, line.loops[-1], place.function)
    place = step_line(cost, training)
    line = facts.source.get(f"{place.file}:{place.line}")
    step_loops = _step_loops(facts, training)
    inner = [one for one in line.loops if one not in step_loops] if line is not None else []
    return Place(place.file, inner[-1], place.function) if inner and step_loops else None


def _step_loops(facts: Facts, training: tuple[str, str] | None) -> tuple[int, ...]:
    """Return the loops around the optimizer's step: epochs and steps."""
    for cost in costs_of(facts):
        if cost.phase == "optimizer" and (cost.place.file, cost.place.function) == training:
            line = facts.source.get(cost.key)
            if line is not None:
                return line.loops
    return ()
