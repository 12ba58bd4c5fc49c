"""Two kinds of a quantity, told apart by a gap: what some of the values have more than the others.

Where it is known how many values are of the dearer kind, but not which, the largest of them are
taken for these. The largest of equal values are larger too, by chance; so a gap counts only where
there is one: at least half of the distance of the medians lies between the tails of the two kinds
(their tenth part on the side of the other). For one normal or uniform kind that is a fifth.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hotlap.stats.quantiles import quantile

LEAST: Final = 8
"""Values of each kind below which nothing is told apart."""
_TAIL: Final = 0.1
_BETWEEN: Final = 0.5


def gap(values: Sequence[float], part: float) -> float | None:
    """Return by how much the dearer kind's median lies above that of the others.

    part: how many (0-1) are of the dearer kind. 0.0 where they cannot be told apart; None where one
    of the kinds has fewer than ``LEAST`` values.
    """
    ordered = sorted(values)
    many = round(part * len(ordered))
    if many < LEAST or len(ordered) - many < LEAST:
        return None
    others, dearer = ordered[:-many], ordered[-many:]
    low, high = quantile(dearer, _TAIL), quantile(others, 1.0 - _TAIL)
    first, second = quantile(others, 0.5), quantile(dearer, 0.5)
    if low is None or high is None or first is None or second is None:
        return None
    return second - first if low - high >= _BETWEEN * (second - first) > 0.0 else 0.0
