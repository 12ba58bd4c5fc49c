"""Of two runs, or two arms of an experiment: which is faster, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

WORDS: Final = ("faster", "slower", "no difference", "not comparable")

MINIMUM_EFFECT: Final = 0.03
"""A difference (0-1) below this is nothing to act on, however surely it was measured."""


@dataclass(frozen=True)
class Interval:
    """A ratio and its 95 % interval: time before over time after, above 1 is faster after."""

    low: float
    mid: float
    high: float


@dataclass(frozen=True)
class Change:
    """What a part of a step takes before and after, in mean nanoseconds; None: not measured."""

    name: str
    before_ns: int | None
    after_ns: int | None


@dataclass(frozen=True)
class Comparison:
    """The second run against the first.

    word: of ``WORDS``. ratio: of the mean time of steady steps; None where there is none. by: what
    a unit of work is, ``step`` or ``sample``. because: why they cannot be compared, in words.
    doubts: what the interval does not contain. changes: where the difference lies, phase by phase.
    """

    word: str
    ratio: Interval | None
    by: str
    because: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()


def word_of(ratio: Interval, margin: float = 0.0) -> str:
    """Return faster, slower or no difference: what the interval excludes and is worth a word.

    margin: by how much (0-1) the interval must lie beside 1, for what is not in it.
    """
    if ratio.low > 1.0 + margin and ratio.mid >= 1.0 + MINIMUM_EFFECT:
        return "faster"
    if ratio.high < 1.0 / (1.0 + margin) and ratio.mid <= 1.0 / (1.0 + MINIMUM_EFFECT):
        return "slower"
    return "no difference"
