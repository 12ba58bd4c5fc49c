"""The lines of a step: which line of the training loop a cost was called from.

The training loop is the function in which backward passes and optimizer steps are called. A
framework's loop is not the user's; then there is none, and costs stand for themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

from hotlap.diagnose.costs import Cost
from hotlap.diagnose.say import line_of
from hotlap.values.facts import Facts
from hotlap.values.record import Place

_MOST: Final = 0.5
_PASSES: Final = {"forward", "backward", "optimizer"}


def training_function(costs: Sequence[Cost]) -> tuple[str, str] | None:
    """Return file and name of the function that holds the training loop, or None.

    The innermost one below which most of both the backward passes and the optimizer's steps happen:
    an optimizer or a derivative that the script itself has written is below it, not it.
    """
    found = {phase: _stacks(costs, phase) for phase in ("backward", "optimizer")}
    wholes = {phase: sum(ns for _, ns in rows) for phase, rows in found.items()}
    inside: dict[tuple[str, str], dict[str, float]] = defaultdict(lambda: defaultdict(float))
    depth: dict[tuple[str, str], int] = {}
    for phase, rows in found.items():
        for stack, ns in rows:
            for index, function in enumerate(reversed(stack)):
                inside[function][phase] += ns
                depth[function] = max(depth.get(function, 0), index)
    candidates = [
        function
        for function, sums in inside.items()
        if all(sums[phase] >= _MOST * whole for phase, whole in wholes.items())
    ]
    return max(candidates, key=lambda one: depth[one], default=None)


def _stacks(costs: Sequence[Cost], phase: str) -> list[tuple[tuple[tuple[str, str], ...], float]]:
    """Return the functions of each cost, innermost first and each once, with its time."""
    return [
        (
            tuple(dict.fromkeys((at.file, at.function) for at in one.stack)),
            one.ns,
        )
        for one in costs
        if one.role == "trainer" and one.phase == phase
    ]


def framework_lines(costs: Sequence[Cost]) -> frozenset[str]:
    """Return the lines ``file:line`` from which a framework trains.

    Forward passes, backward passes and optimizer all happen below such a line, in code that is not
    the user's: what the line costs says nothing of the line.
    """
    phases: dict[str, set[str]] = defaultdict(set)
    for one in costs:
        if one.role == "trainer":
            phases[one.key].add(one.phase)
    return frozenset(key for key, seen in phases.items() if seen >= _PASSES)


def step_line(cost: Cost, function: tuple[str, str] | None) -> Place:
    """Return the line of the training loop that led to a cost; its own line if none did."""
    for place in cost.stack:
        if (place.file, place.function) == function:
            return place
    return cost.place


def is_from_header(facts: Facts, cost: Cost, costs: Sequence[Cost]) -> bool:
    """Tell whether a cost is the making of the next batch: by an iterator of the script's own.

    It is called from the line of a ``for`` statement that has the backward pass in its body.
    """
    function = training_function(costs)
    header = step_line(cost, function)
    passes = (line_of(facts, step_line(one, function)) for one in costs if one.phase == "backward")
    return any(line is not None and header.line in line.loops for line in passes)


def below_step(cost: Cost, function: tuple[str, str] | None) -> tuple[Place, ...]:
    """Return the user's frames below the training loop, from the inside out."""
    found: list[Place] = []
    for place in cost.stack:
        if (place.file, place.function) == function:
            return tuple(found)
        found.append(place)
    return tuple(found)
