"""What can be told apart here and now: two windows of the same condition, compared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from hotlap.experiment.windows import of_kind
from hotlap.stats.ratio import ratio
from hotlap.values.facts import Facts, Measured, Missing
from hotlap.values.trial import WindowResult

_LEAST: Final = 8


def with_noise(facts: Facts, found: Sequence[WindowResult]) -> Facts:
    """Return the facts with their noise floor: of two baselines, else of the watched steps.

    It is the largest relative difference that the 95 % interval of the two windows' ratio allows.
    """
    same = of_kind(found, "baseline")
    if len(same) >= 2:
        compared = ratio([same[0].step_ns], [same[-1].step_ns])
        if compared is not None:
            origin = "two equal windows of one trial"
            return replace(facts, noise=Measured(compared.spread, origin))
    if isinstance(facts.noise, Measured):
        return facts
    steady = facts.step_series[len(facts.step_series) // 4 :]
    if len(steady) < _LEAST:
        return replace(facts, noise=Missing("too few steps for two equal windows"))
    half = len(steady) // 2
    compared = ratio([steady[:half]], [steady[half:]])
    if compared is None:
        return replace(facts, noise=Missing("too few steps for two equal windows"))
    return replace(facts, noise=Measured(compared.spread, "two halves of the watched steps"))
