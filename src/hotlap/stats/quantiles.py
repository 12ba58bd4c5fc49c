"""Order statistics of a list: robust against the few steps that an evaluation or a stall spoils."""

from __future__ import annotations

import math
from collections.abc import Sequence


def quantile(values: Sequence[float], q: float) -> float | None:
    """Return the q-quantile by linear interpolation (Hyndman and Fan 1996, type 7).

    This is the default of numpy and R. None of an empty sequence.

    Args:
        values: numbers of any unit, in any order.
        q: the quantile asked for, 0 (smallest) to 1 (largest).

    Raises:
        ValueError: q is outside 0 to 1.
    """
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"a quantile lies between 0 and 1, got {q}")
    if not values:
        return None
    ordered = sorted(values)
    position = q * (len(ordered) - 1)
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (position - below) * (ordered[above] - ordered[below])


def median(values: Sequence[float]) -> float | None:
    """Return the middle of the values, or None when there are none."""
    return quantile(values, 0.5)


def mad(values: Sequence[float]) -> float | None:
    """Return the median absolute deviation from the median (Hampel 1974), unscaled.

    Multiply by 1.4826 to estimate the standard deviation of normally distributed values.
    None when there are no values.
    """
    middle = median(values)
    if middle is None:
        return None
    return median([abs(value - middle) for value in values])


def far_out(values: Sequence[float]) -> tuple[float, float] | None:
    """Return Tukey's outer fences: a value beyond them is far out (Tukey 1977).

    They lie three interquartile ranges below the first and above the third quartile, so they
    need no assumption about the shape of the distribution; of normal values two in a million
    lie outside. None when there are no values.
    """
    first, third = quantile(values, 0.25), quantile(values, 0.75)
    if first is None or third is None:
        return None
    reach = 3.0 * (third - first)
    return first - reach, third + reach
