"""How much faster: the ratio of two series' medians, with an interval by resampling.

Step times are no independent draws (a garbage collection, a neighbour, a clock that slows down
last longer than a step), so whole blocks of them are drawn, not single ones: the block bootstrap
of Carlstein (Annals of Statistics 14, 1986), with blocks of equal length and percentile limits
(Efron and Tibshirani 1993, chapter 13).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hotlap.stats.quantiles import median, quantile

MOST_BLOCKS: Final = 24
LEAST_BLOCKS: Final = 4
_DRAWS: Final = 1000
_SEED: Final = 20240229


@dataclass(frozen=True)
class Ratio:
    """A ratio of medians (or means) with its 95 % interval."""

    mid: float
    low: float
    high: float

    @property
    def spread(self) -> float:
        """Return the largest relative difference (0-1) that the interval allows, of the longer."""
        return 1.0 - min(1.0, self.low, 1.0 / self.high)


Middle = Callable[[Sequence[float]], float | None]


def mean(values: Sequence[float]) -> float | None:
    """Return the mean, None of no values: what a stall at every tenth step is a part of."""
    return sum(values) / len(values) if values else None


def ratio(
    before: Sequence[Sequence[int]], after: Sequence[Sequence[int]], middle: Middle = median
) -> Ratio | None:
    """Return the median of ``before`` over the median of ``after``; above 1 means faster after.

    before, after: step times in nanoseconds, one series per window. Where there are several
    windows of a kind, whole windows are drawn first, then blocks in them, so that what differs
    from window to window widens the interval. middle: ``mean`` compares means instead: of all the
    time that was spent, with an interval that single accidents widen.
    Returns None when either side has fewer than four values or no positive middle.
    """
    sides = [[_blocks(series, middle) for series in side if series] for side in (before, after)]
    if any(sum(map(len, side)) < LEAST_BLOCKS for side in sides):
        return None
    middles = [middle([value for series in side for value in series]) for side in (before, after)]
    if any(not middle for middle in middles):
        return None
    chance = random.Random(_SEED)
    drawn = []
    for _ in range(_DRAWS):
        first, second = (_draw(side, chance, middle) for side in sides)
        if first > 0 and second > 0:
            drawn.append(math.log(first / second))
    low, high = quantile(drawn, 0.025), quantile(drawn, 0.975)
    mid = (middles[0] or 0.0) / (middles[1] or 1.0)
    if low is None or high is None:
        return None
    return Ratio(mid, min(mid, math.exp(low)), max(mid, math.exp(high)))


def _blocks(series: Sequence[int], middle: Middle) -> list[float]:
    """Return the middles of at most ``MOST_BLOCKS`` blocks of equal length, in order."""
    length = max(1, -(-len(series) // MOST_BLOCKS))
    cut = [series[at : at + length] for at in range(0, len(series) - length + 1, length)]
    return [found for one in cut if (found := middle(one)) is not None]


def _draw(side: Sequence[Sequence[float]], chance: random.Random, middle: Middle) -> float:
    windows = chance.choices(side, k=len(side)) if len(side) > 1 else side
    drawn = [value for blocks in windows for value in chance.choices(blocks, k=len(blocks))]
    return middle(drawn) or 0.0
