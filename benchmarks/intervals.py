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
