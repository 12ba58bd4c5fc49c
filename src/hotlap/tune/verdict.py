"""What the runs of two arms say: how much faster the second is, and whether that is enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby

from hotlap.stats.paired import paired, run_spread
from hotlap.values.arm import ArmRun
from hotlap.values.comparison import MINIMUM_EFFECT, Interval

DRIFT = 0.08
"""Two runs of one arm, before and after another, that differ by more (0-1) are no reference."""


@dataclass(frozen=True)
class Verdict:
    """word: ``gain``, ``none``, ``unclear``. interval: time before over time after."""

    word: str
    interval: Interval | None

    @property
    def says(self) -> str:
        """Return the measurement in words."""
        if self.interval is None:
            return "its runs and the others' have too little in common to be compared"
        low, mid, high = self.interval.low, self.interval.mid, self.interval.high
        return f"{mid:.2f} times as fast ({low:.2f} to {high:.2f})"


def judge_runs(before: Sequence[ArmRun], after: Sequence[ArmRun]) -> Verdict:
    """Return whether an arm is faster than another, by all of their runs."""
    found = compare_runs(before, after)
    if found is None:
        return Verdict("none", None)
    least = 1.0 + MINIMUM_EFFECT
    if found.low > 1.0 and found.mid >= least:
        return Verdict("gain", found)
    if found.high < least:
        return Verdict("none", found)
    return Verdict("unclear", found)


def compare_runs(
    before: Sequence[ArmRun], after: Sequence[ArmRun], everything: Iterable[ArmRun] = ()
) -> Interval | None:
    """Return the time of one arm over that of another, paired by the steps that they share.

    everything: all runs of the experiment; their spread within each arm widens the interval where
    it is larger than what the stretches of steps tell.
    """
    spread = noise(everything)
    found = paired([one.spans_ns for one in before], [one.spans_ns for one in after], spread)
    return None if found is None else Interval(found.low, found.mid, found.high)


def noise(runs: Iterable[ArmRun]) -> float | None:
    """Return by how much (0-1) one run may differ from its arm's mean, 95 %; None if unknown."""
    sound = sorted((one for one in runs if one.failed is None), key=_alike)
    arms = [[float(run.total_ns) for run in same] for _, same in groupby(sound, _alike)]
    return run_spread(arms)


def _alike(run: ArmRun) -> tuple[str, int]:
    return run.arm.says, len(run.spans_ns)  # one that was cut short measured less work


def drifted(before: ArmRun, after: ArmRun) -> bool:
    """Tell whether two runs of one arm differ so much that the machine must have changed."""
    one, other = float(before.total_ns), float(after.total_ns)
    return min(one, other) <= 0 or max(one, other) / min(one, other) > 1.0 + DRIFT
