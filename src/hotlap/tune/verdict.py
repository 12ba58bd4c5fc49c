"""What the runs of two arms say: how much faster the second is, and whether that is enough."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

from hotlap.stats.paired import paired, run_spread
from hotlap.values.arm import ArmRun
from hotlap.values.comparison import MINIMUM_EFFECT, Interval

DRIFT = 0.08
"""Two runs of one arm, before and after another, that differ by more (0-1) are no reference."""

_START_NOISE: Final = 0.25
"""Two start-ups of one command may differ by so much (0-1): less is no longer start."""
_HOPELESS: Final = 0.6
"""So slow (time before over time after) that no machine which slows down meanwhile explains it."""


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


def extra_start(base: ArmRun | None, run: ArmRun) -> float | None:
    """Return by how many seconds the start grew, 0 within noise; None where it is not known."""
    if base is None or base.start_s is None or run.start_s is None:
        return None
    extra = run.start_s - base.start_s
    return extra if extra > _START_NOISE * base.start_s else 0.0


def no_use(run: ArmRun, knobs: Iterable[str]) -> str | None:
    """Say why a run of some knobs proves nothing: it failed, or one of them did nothing."""
    if run.failed is not None:
        return f"it does not work here: {run.failed}"
    idle = next((knob for knob in knobs if not run.acted(knob)), None)
    return None if idle is None else f"it did nothing: {run.proof(idle)}"


def is_hopeless(base: ArmRun, run: ArmRun) -> bool:
    """Tell whether one run is enough: it is slower than any noise could explain."""
    found = compare_runs([base], [run])
    return found is not None and found.high < _HOPELESS


def whatever_drift(before: ArmRun, run: ArmRun, after: ArmRun) -> Verdict | None:
    """Return what both runs beside a knob's say of it, though they differ; None where they do not.

    Of two gains the smaller one is taken, of two losses too: the rest is the machine's.
    """
    both = [judge_runs([one], [run]) for one in (before, after)]
    words = {one.word for one in both if one.interval is not None}
    if words not in ({"gain"}, {"none"}):
        return None
    nearest = min if words == {"gain"} else max
    return nearest(both, key=lambda one: one.interval.mid if one.interval is not None else 1.0)


def no_gain(verdict: Verdict) -> str:
    """Say in words that a knob brought nothing, or less."""
    if verdict.interval is not None and verdict.interval.high < 1.0:
        return f"it is slower: {verdict.says}"
    return f"no gain that counts: {verdict.says}"


def pays_back(extra_s: float | None, base: ArmRun | None, verdict: Verdict) -> int | None:
    """Return after how many steps a longer start-up is earned; 0 if it is no longer."""
    if extra_s is None or base is None or base.step_ns is None or verdict.interval is None:
        return None
    saved_s = base.step_ns / 1e9 * (1 - 1 / verdict.interval.mid)
    if extra_s <= 0 or saved_s <= 0:
        return 0
    return round(extra_s / saved_s)
