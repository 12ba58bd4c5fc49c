"""Where a curve of rates flattens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

NEAR: Final = 0.95
"""A rate of at least this part of the best one counts as equal to it."""


def knee(rates: Sequence[tuple[int, float]]) -> int | None:
    """Return the fewest workers whose rate is within 5 % of the best one, None of no rates.

    Args:
        rates: pairs of a number of workers and the rate that was measured with it, in any order.
    """
    if not rates:
        return None
    best = max(rate for _, rate in rates)
    return min(count for count, rate in rates if rate >= NEAR * best)
