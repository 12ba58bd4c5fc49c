"""Paired differences and how sure they are."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

RESAMPLES = 4000


@dataclass(frozen=True)
class Interval:
    """A median with its 95 % interval. pairs: how many differences it rests on."""

    low: float
    mid: float
    high: float
    pairs: int

    def against(self, bound: float) -> str:
        """Say whether the quantity is below a bound: yes, no, or open (the interval covers it)."""
        if self.high < bound:
            return "yes"
        return "no" if self.low > bound else "open"

    def text(self, scale: float = 1.0, digits: int = 0) -> str:
        """Return ``mid (low to high)``, multiplied by ``scale``."""
        low, mid, high = (
            f"{value * scale:+.{digits}f}" for value in (self.low, self.mid, self.high)
        )
        return f"{mid} ({low} to {high})"


def median_interval(values: Sequence[float]) -> Interval:
    """Return the median and its percentile bootstrap interval (Efron 1979), 4000 resamples.

    values: at least one; with fewer than six the interval is their range, which is said by
    ``pairs``. The resampling is seeded: the same values give the same interval.
    """
    if len(values) < 6:
        return Interval(min(values), median(values), max(values), len(values))
    chance = random.Random(0)
    medians = sorted(median(chance.choices(values, k=len(values))) for _ in range(RESAMPLES))
    low, high = medians[round(RESAMPLES * 0.025)], medians[round(RESAMPLES * 0.975) - 1]
    return Interval(low, median(values), high, len(values))


def nested_interval(groups: Sequence[Sequence[float]]) -> Interval:
    """Return the median of all values and its interval, where values come in groups.

    groups: one per process; the values of a process share where its code and data came to lie,
    which by itself moves a measurement (Mytkowicz et al., ASPLOS 2009). So processes are resampled
    first, then the values within each (two-stage bootstrap, Davison and Hinkley 1997, 3.8). With
    one group, the interval knows nothing of that.
    """
    every = [value for group in groups for value in group]
    if len(groups) < 2:
        return median_interval(every)
    chance = random.Random(0)
    medians = []
    for _ in range(RESAMPLES):
        drawn = chance.choices(groups, k=len(groups))
        medians.append(median([v for one in drawn for v in chance.choices(one, k=len(one))]))
    medians.sort()
    low, high = medians[round(RESAMPLES * 0.025)], medians[round(RESAMPLES * 0.975) - 1]
    return Interval(low, median(every), high, len(every))
