"""Where warm-up ends and steady state begins in a series of step times.

Why not MSER-5 (White 1997), the usual rule of simulation: it minimises the standard error of a
*mean*, so one evaluation or stall of seconds among steps of milliseconds decides where it cuts,
and it keeps cutting through series that grow. Step times have exactly such spikes. What is kept
of it are the batches of five.

The rule here compares like with like. The later half of the series is the reference. A step, or
the median of five steps, belongs to the warm-up while it lies beyond Tukey's outer fences of the
reference's own steps, or own medians of five. So:

* single spikes (evaluation, the first batch of an epoch) do not move medians or fences;
* two kinds of steps that alternate widen the fences by themselves, as does a series that grows;
* nothing after the first half is ever called warm-up.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hotlap.stats.quantiles import far_out, median

BATCH: Final = 5
"""Steps whose median is looked at together, as in MSER-5."""

FEWEST: Final = 8
"""In a series shorter than this, no half is long enough to be a reference."""

NEGLIGIBLE: Final = 0.05
"""Steps that differ from the reference by less than this share are steady however regular the
reference is: leaving them in changes no figure of a report visibly."""


def steady_start(times: Sequence[int]) -> int:
    """Return the index of the first steady step; 0 when there is no warm-up.

    Args:
        times: durations of consecutive steps from the first one on, in any unit.

    Returns:
        An index of at most half the length of the series.
    """
    if len(times) < FEWEST:
        return 0
    half = len(times) // 2
    reference = times[half:]
    steps = _fences(reference)
    start = _batches_out(times, half)
    while start > 0 and _inside(times[start - 1], steps):
        start -= 1
    while start < half and not _inside(times[start], steps):
        start += 1
    return start


def _batches_out(times: Sequence[int], half: int) -> int:
    """Return how many leading steps lie in batches whose median is not the reference's."""
    medians = [_middle(times[at : at + BATCH]) for at in range(half, len(times) - BATCH + 1, BATCH)]
    if len(medians) < 2:
        return 0
    fences = _fences(medians)
    start = 0
    while start + BATCH <= half and not _inside(_middle(times[start : start + BATCH]), fences):
        start += BATCH
    return start


def _fences(reference: Sequence[float]) -> tuple[float, float]:
    fences = far_out(reference)
    assert fences is not None, "a reference is never empty"
    middle = _middle(reference)
    return (
        min(fences[0], middle * (1.0 - NEGLIGIBLE)),
        max(fences[1], middle * (1.0 + NEGLIGIBLE)),
    )


def _middle(values: Sequence[float]) -> float:
    middle = median(values)
    assert middle is not None, "a batch is never empty"
    return middle


def _inside(value: float, fences: tuple[float, float]) -> bool:
    return fences[0] <= value <= fences[1]
