"""A trend in a series of times, that single stalls do not make.

Theil (1950) and Sen (1968): the median of the slopes between pairs. Certainty by Kendall's rank
test (Mann 1945) on block medians, so that neighbouring values need not be independent.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

_BLOCKS = 24


@dataclass(frozen=True)
class Trend:
    """start, end: the fitted line at both ends. mean: of the series. growth: end over start.

    certain: a series without trend would look like this at most once in a hundred times.
    """

    start: float
    end: float
    mean: float
    certain: bool

    @property
    def growth(self) -> float:
        """Return end over start; 1 where the start is not positive."""
        return self.end / self.start if self.start > 0 else 1.0


def trend(series: Sequence[float]) -> Trend:
    """Return the trend of a series, oldest first. Raises ValueError below 8 values."""
    if len(series) < 8:
        raise ValueError(f"a trend needs at least 8 values, not {len(series)}")
    count = min(_BLOCKS, len(series) // 4) if len(series) >= 16 else len(series)
    edges = [round(i * len(series) / count) for i in range(count + 1)]
    blocks = [median(series[a:b]) for a, b in itertools.pairwise(edges)]
    slopes, concordant = [], 0
    for i in range(count):
        for j in range(i + 1, count):
            slopes.append((blocks[j] - blocks[i]) / (j - i))
            concordant += (blocks[j] > blocks[i]) - (blocks[j] < blocks[i])
    slope = median(slopes)
    middle = median(blocks) - slope * (count - 1) / 2
    spread = math.sqrt(count * (count - 1) * (2 * count + 5) / 18)
    return Trend(
        start=middle,
        end=middle + slope * (count - 1),
        mean=sum(series) / len(series),
        certain=abs(concordant) / spread > 2.576,
    )
