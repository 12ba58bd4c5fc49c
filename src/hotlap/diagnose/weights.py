"""Weights that are computed from others (parametrizations), again at every turn of a loop."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from hotlap.diagnose.build import worth
from hotlap.diagnose.costs import Cost, costs_of
from hotlap.diagnose.loops import loop_around
from hotlap.diagnose.passes import backward_of
from hotlap.diagnose.regions import Region, region_of
from hotlap.diagnose.step_lines import training_function
from hotlap.values.facts import Facts
from hotlap.values.record import Place

_LEAF: Final = re.compile(r"torch\.nn\.utils\.(parametriz|weight_norm|spectral_norm)")
_MUCH: Final = 0.2
"""Of a line's time in the computation of its weights; the rest is what the layer does with them."""


@dataclass(frozen=True)
class Weights:
    """Lines that compute weights in a loop. share: of the run, with its backward pass. most: with
    what else these lines do with the weights."""

    region: Region
    loop: Place
    share: float
    most: float


def weights_again(facts: Facts) -> Weights | None:
    """Return what is spent on weights that do not change between the turns of a loop, or None."""
    costs = costs_of(facts)
    training = training_function(costs)
    behind = backward_of(facts)
    parts = {
        id(one): part
        for one in costs
        if one.phase == "forward" and one.role == "trainer" and (part := _part(one)) >= _MUCH
    }
    chosen = [one for one in costs if id(one) in parts]
    loops = {id(one): loop_around(facts, one, training) for one in chosen}
    chosen = [one for one in chosen if loops[id(one)] is not None]
    region = region_of(chosen, costs)
    if region is None:
        return None
    whole = {id(one): one.share + behind.get(one.key, 0.0) for one in chosen}
    share = sum(parts[name] * whole[name] for name in whole)
    loop = loops[id(region.top)]
    if loop is None or not worth(facts, share):
        return None
    return Weights(region, loop, min(0.99, share), min(0.99, sum(whole.values())))


def _part(cost: Cost) -> float:
    whole = sum(ns for _, ns in cost.leaves)
    return sum(ns for leaf, ns in cost.leaves if _LEAF.search(leaf)) / whole if whole else 0.0
