"""How much faster one arm is than another, when all runs do the same work in the same order.

Each run is cut into the same stretches of steps, so an evaluation or an epoch's end falls into the
same stretch of every run, and stretches are drawn at the same positions on both sides: what all
runs do at that place does not widen the interval. Where there are several runs of an arm, whole
runs are drawn as well. (Bootstrap of paired observations: Efron and Tibshirani 1993, chapter 8.)

A disturbed run only ever takes longer. So of several runs each stretch counts with its median.

Between two runs of one command lies what no stretch shows (where memory fell, which core). The
spread of runs around their own arm's middle, pooled over all arms, gives a second interval by
Student's t; the wider of the two is returned. It is the median absolute deviation, scaled to the
standard deviation of a normal distribution (Hampel, JASA 69, 1974), so that one disturbed run does
not make everything else unknown.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from statistics import median
from typing import Final

from hotlap.stats.quantiles import quantile
from hotlap.stats.ratio import Ratio

_DRAWS: Final = 1000
_SEED: Final = 20240229
LEAST: Final = 4
"""Stretches that two runs must have in common."""
_T95: Final = (12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14)
"""Student's t, 97.5 %, for 1, 2, … degrees of freedom."""
_NORMAL: Final = 1.4826


def paired(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], spread: float | None = None
) -> Ratio | None:
    """Return the time of ``before`` over the time of ``after``; above 1 means faster after.

    before, after: per run, wall times of stretches in nanoseconds, cut alike. What the shortest
    run has is compared. spread: ``run_spread`` of the experiment times Student's t for it; the
    interval is at least so wide. None where fewer than four stretches are common to all.
    """
    length = min((len(run) for run in (*before, *after)), default=0)
    if not before or not after or length < LEAST:
        return None
    first, second = ([run[:length] for run in side] for side in (before, after))
    if any(sum(run) <= 0 for run in (*first, *second)):
        return None
    mid = sum(_middle(first)) / sum(_middle(second))
    chance = random.Random(_SEED)
    drawn = []
    for _ in range(_DRAWS):
        places = chance.choices(range(length), k=length)
        one, other = (
            sum(stretches[place] for place in places)
            for stretches in (_drawn(first, chance), _drawn(second, chance))
        )
        if one > 0 and other > 0:
            drawn.append(math.log(one / other))
    low, high = quantile(drawn, 0.025), quantile(drawn, 0.975)
    if low is None or high is None:
        return None
    if spread is not None:
        margin = spread * math.sqrt(1 / len(first) + 1 / len(second))
        low, high = min(low, math.log(mid) - margin), max(high, math.log(mid) + margin)
    return Ratio(mid, min(mid, math.exp(low)), max(mid, math.exp(high)))


def run_spread(arms: Sequence[Sequence[float]]) -> float | None:
    """Return how far a run lies from another of the same arm: t times the pooled deviation.

    arms: per arm, the total times of its runs. It is a relative difference (of logarithms), for
    one run; a mean of n runs has it divided by the root of n. None without two runs of one arm.
    """
    logs = [[math.log(one) for one in arm if one > 0] for arm in arms]
    several = [arm for arm in logs if len(arm) > 1]
    freedom = sum(len(arm) - 1 for arm in several)
    if freedom < 1:
        return None
    # Two runs have their middle between them: half of their distance, which hides a part of it.
    off = [
        abs(one - median(arm)) * math.sqrt(len(arm) / (len(arm) - 1))
        for arm in several
        for one in arm
    ]
    t = _T95[freedom - 1] if freedom <= len(_T95) else 2.0
    return t * _NORMAL * median(off)


def _middle(side: Sequence[Sequence[int]]) -> list[float]:
    return [median(stretch) for stretch in zip(*side, strict=True)]


def _drawn(side: Sequence[Sequence[int]], chance: random.Random) -> list[float]:
    return _middle(chance.choices(side, k=len(side)) if len(side) > 1 else side)
