"""The whole plan against the command as it stands, in an order that is fixed before the first run.

What was chosen because it looked fast looks faster than it is; so the plan's gain comes from fresh
runs alone. Both arms come first equally often and drift hits both alike: A B B A, and once more
the other way where that is not clear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from hotlap.tune.search import Runs
from hotlap.tune.verdict import compare_runs
from hotlap.values.arm import Arm, ArmRun
from hotlap.values.comparison import MINIMUM_EFFECT, Interval, word_of

ORDER: Final = "ABBABAAB"
"""A: as it stands. B: under the plan. The first four are always run."""
_ALWAYS: Final = 4
_CLEAR: Final = 0.08
"""An interval whose ends lie within this share (0-1) of its middle needs no more runs."""


@dataclass(frozen=True)
class Confirmed:
    """gain: time before over time after; None where it could not be measured, because says why."""

    word: str
    gain: Interval | None
    runs: tuple[ArmRun, ...]
    because: str | None = None


def confirm(runs: Runs, base: Arm, tuned: Arm, has_time: Callable[[], bool]) -> Confirmed:
    """Run both arms in ``ORDER`` and return what the plan brings.

    has_time: asked before every pair of runs after the first four.
    """
    sides: dict[str, list[ArmRun]] = {"A": [], "B": []}
    done: list[ArmRun] = []
    for at, side in enumerate(ORDER):
        if runs.is_interrupted:
            break
        pairs = at >= _ALWAYS and at % 2 == 0  # one run more of one arm would see another machine
        if pairs and (is_clear(_gain(sides, runs.runs)) or not has_time()):
            break
        arm, says = (base, "as it stands") if side == "A" else (tuned, "under the plan")
        run = runs.run(arm, f"{says}, to confirm")
        if runs.is_interrupted:
            break
        if run.failed is not None:
            return Confirmed("not comparable", None, tuple(done), f"{says}: {run.failed}")
        done.append(run)
        sides[side].append(run)
    gain = _gain(sides, runs.runs)
    if gain is None or len(sides["B"]) < 2:
        because = "too few runs were made, side by side, to confirm it"
        return Confirmed("not comparable", None, tuple(done), because)
    return Confirmed(word_of(gain), gain, tuple(done))


def is_clear(gain: Interval | None) -> bool:
    """Tell whether more runs would not change the word, nor the figure much."""
    if gain is None or (gain.high >= 1.0 and gain.low <= 1.0 + MINIMUM_EFFECT):
        return False
    return gain.low >= (1 - _CLEAR) * gain.mid and gain.high <= (1 + _CLEAR) * gain.mid


def _gain(sides: dict[str, list[ArmRun]], everything: Sequence[ArmRun]) -> Interval | None:
    return compare_runs(sides["A"], sides["B"], everything)
