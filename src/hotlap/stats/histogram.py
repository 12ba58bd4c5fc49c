"""Histograms of durations that stay small however long a run is.

Log-linear buckets, as in HdrHistogram (Tene 2012) and OpenTelemetry's exponential histogram:
each power of two is cut into 16 equal buckets, so a bucket is at most 1/16 as wide as its lower
end, and every value below 32 has a bucket of its own. A histogram is a plain ``{bucket: count}``:
two of them merge by adding counts, and nothing needs to be known beforehand.

``bucket`` runs inside the training process, once a step: bit arithmetic on one integer, no table,
no logarithm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping


def bucket(ns: int) -> int:
    """Return the bucket of a duration in nanoseconds; negative durations count as 0.

    Cost: about 0.1 µs.
    """
    if ns < 32:
        return max(0, ns)
    shift = ns.bit_length() - 5
    return (shift << 4) + (ns >> shift)


def lower(bucket: int) -> int:
    """Return the smallest duration, in nanoseconds, that falls into the bucket."""
    if bucket < 32:
        return bucket
    return ((bucket & 15) + 16) << ((bucket >> 4) - 1)


def upper(bucket: int) -> int:
    """Return the smallest duration, in nanoseconds, that falls into the next bucket."""
    return lower(bucket + 1)


def total(histogram: Mapping[int, int]) -> int:
    """Return how many durations the histogram holds."""
    return sum(histogram.values())


def merge(histograms: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return one histogram that holds the durations of all the given ones."""
    merged: dict[int, int] = {}
    for histogram in histograms:
        for key, count in histogram.items():
            merged[key] = merged.get(key, 0) + count
    return merged


def quantile(histogram: Mapping[int, int], q: float) -> float | None:
    """Return the q-quantile in nanoseconds, or None of an empty histogram.

    The durations of a bucket are taken as spread evenly over it; between two neighbours in order
    the value is interpolated linearly (Hyndman and Fan 1996, type 7), so the error is below the
    width of the bucket, that is below 1/16 of the value, and values below 32 ns are exact.

    Args:
        histogram: counts by bucket.
        q: the quantile asked for, 0 (smallest) to 1 (largest).

    Raises:
        ValueError: q is outside 0 to 1.
    """
    if not 0.0 <= q <= 1.0:
        raise ValueError(f"a quantile lies between 0 and 1, got {q}")
    count = total(histogram)
    if count == 0:
        return None
    position = q * (count - 1)
    below = int(position)
    first = _ordered(histogram, below)
    fraction = position - below
    if fraction == 0.0:
        return first
    return first + fraction * (_ordered(histogram, below + 1) - first)


def _ordered(histogram: Mapping[int, int], index: int) -> float:
    """Return the estimate of the index-th smallest duration (0-based) of the histogram."""
    seen = 0
    for key in sorted(histogram):
        count = histogram[key]
        if index < seen + count:
            low, width = lower(key), upper(key) - 1 - lower(key)
            return low + width * (index - seen + 0.5) / count
        seen += count
    raise IndexError(f"the histogram holds {seen} durations, asked for number {index}")
