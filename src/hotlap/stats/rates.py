"""How much per second, with an interval: the ratio of two sums, by resampling.

Amount and time of one stretch belong together and neighbouring stretches are alike (a slow disk, a
neighbour on the core), so blocks of neighbouring stretches are drawn together (Carlstein, Annals
of Statistics 14, 1986) and the ratio of their sums is taken (the ratio estimator of Cochran,
Sampling Techniques 1977, chapter 6), with percentile limits (Efron and Tibshirani 1993, chapter
13).
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hotlap.stats.quantiles import quantile

MOST_BLOCKS: Final = 24
LEAST_BLOCKS: Final = 4
_DRAWS: Final = 1000
_SEED: Final = 20240229
_NS: Final = 1e9


@dataclass(frozen=True)
class Rate:
    """An amount per second with its 95 % interval; None where there were too few stretches."""

    per_s: float
    low: float | None
    high: float | None


def rate(stretches: Sequence[tuple[float, int]], together: int = 1) -> Rate | None:
    """Return the amount per second of all stretches.

    Args:
        stretches: amounts and nanoseconds, in order of time.
        together: stretches that must not be parted: of workers that deliver in rounds, one round.

    Returns:
        None where no time passed or nothing was done. No interval of fewer than four blocks.
    """
    time_ns = sum(ns for _, ns in stretches)
    amount = sum(one for one, _ in stretches)
    if time_ns <= 0 or amount <= 0:
        return None
    length = max(1, together) * max(1, -(-len(stretches) // (MOST_BLOCKS * max(1, together))))
    starts = range(0, len(stretches) - length + 1, length)
    blocks = [
        (
            sum(one for one, _ in stretches[at : at + length]),
            sum(ns for _, ns in stretches[at : at + length]),
        )
        for at in starts
    ]
    mid = amount * _NS / time_ns
    if len(blocks) < LEAST_BLOCKS:
        return Rate(mid, None, None)
    chance = random.Random(_SEED)
    drawn = []
    for _ in range(_DRAWS):
        picked = chance.choices(blocks, k=len(blocks))
        ns = sum(one for _, one in picked)
        if ns > 0:
            drawn.append(sum(one for one, _ in picked) * _NS / ns)
    low, high = quantile(drawn, 0.025), quantile(drawn, 0.975)
    if low is None or high is None:
        return Rate(mid, None, None)
    return Rate(mid, min(mid, low), max(mid, high))
