"""How far two recorded trainings part, against how far unchanged ones do."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from typing import Final

from hotlap.experiment.structure import Found, same
from hotlap.values.trace import GradientTrace, TrainingTrace

_TIMES: Final = 3.0
"""So many times the yardstick's deviation is still within it."""
_FIRST_STEPS: Final = 5
_EXACT: Final = 1e-5
"""Relative difference of losses that rounding explains before chaos sets in."""
_LOSSY: Final = 1e-2
_GRADIENT: Final = 1e-3
_LEAST_RATIO, _MOST_RATIO, _LEAST_COSINE = 0.95, 1.05, 0.99
_SPREAD: Final = 0.05
_BUFFERS: Final = 1e-3


class Curves:
    """Losses, gradients and buffers of two trainings, and what they are measured by.

    base: unchanged ones. other: the one that is judged. perturbed, reseeded: yardsticks, None where
    there is none.
    """

    def __init__(
        self,
        base: Sequence[TrainingTrace],
        other: TrainingTrace,
        perturbed: TrainingTrace | None = None,
        reseeded: TrainingTrace | None = None,
    ) -> None:
        self._base = base
        self._other = other
        self._is_calibrated = perturbed is not None
        self._yardsticks = [one for one in (*base[1:2], perturbed) if one is not None]
        self._seeds = [one for one in (*base[1:2], reseeded) if one is not None]

    def identical(self) -> list[Found]:
        """Compare what is not reproducible to the last bit within its own spread."""
        return self._close(_EXACT, _GRADIENT)

    def rounding(self) -> list[Found]:
        """Compare where sums may be rounded otherwise."""
        return [*self._close(_EXACT, _GRADIENT), self._buffers_close(_BUFFERS)]

    def reduced(self) -> list[Found]:
        """Compare where numbers have fewer bits."""
        return [self._first_loss(_LOSSY), self._gradient(None), self._curve()]

    def resampled(self) -> list[Found]:
        """Compare where other random numbers are drawn."""
        name, other = "the mean loss", self._common()
        own, found = _mean(self._base[0].losses[: len(other)]), _mean(other)
        if own is None or found is None:
            return [(name, None, "no backward pass was seen")]
        means = [_mean(one.losses[: len(other)]) for one in self._seeds]
        apart = [abs(one - own) for one in means if one is not None]
        spread = max((one for one in apart if math.isfinite(one)), default=0.0)
        allowed = max(_TIMES * spread, _SPREAD * abs(own))
        if not spread:
            # The script seeds itself: what is left as a yardstick is how single losses part.
            allowed = max(allowed, _TIMES * _standard_error(self._base[0].losses, other))
        said = f"{own:.4g} became {found:.4g}, where {allowed:.2g} is within what seeds make"
        passed = same(own, found) or abs(found - own) <= allowed
        return [(name, passed, f"the mean loss {said}")]

    def _common(self) -> tuple[float, ...]:
        return self._other.losses[: len(self._base[0].losses)]

    def _close(self, loss: float, gradient: float) -> list[Found]:
        return [self._first_loss(loss), self._gradient(gradient), self._first_losses(loss)]

    def _allowed(self, least: float, deviation: Callable[[TrainingTrace], float | None]) -> float:
        """Return how far a training may part: at least so far, or the yardsticks' distance."""
        found = [deviation(one) for one in self._yardsticks]
        return max([least, *(_TIMES * one for one in found if one is not None)])

    def _first_loss(self, least: float) -> Found:
        name = "the first loss"

        def off(one: TrainingTrace) -> float | None:
            return max(self._parted(one, 1), default=None)

        return self._told(name, least, off, "the first loss is off by {:.1e}")

    def _first_losses(self, least: float) -> Found:
        def off(one: TrainingTrace) -> float | None:
            return max(self._parted(one, _FIRST_STEPS), default=None)

        return self._told(
            "the loss curve",
            least,
            off,
            f"one of the first {_FIRST_STEPS} losses is off by {{:.1e}}",
        )

    def _curve(self) -> Found:
        def off(one: TrainingTrace) -> float | None:
            return _mean(self._parted(one, None))

        least = 0.0 if self._is_calibrated else _LOSSY
        return self._told("the loss curve", least, off, "the losses are off by {:.1e} on average")

    def _told(
        self,
        name: str,
        least: float,
        off: Callable[[TrainingTrace], float | None],
        says: str,
    ) -> Found:
        found = off(self._other)
        if found is None:
            return name, None, "no backward pass was seen"
        allowed = self._allowed(least, off)
        said = says.format(found)
        return name, found <= allowed, f"{said}, where {allowed:.1e} is within the noise"

    def _parted(self, one: TrainingTrace, most: int | None) -> list[float]:
        """Return the relative distance of losses from the unchanged ones, at most so many."""
        own = self._base[0].losses[:most]
        finite = [abs(loss) for loss in own if math.isfinite(loss)]
        floor = 0.01 * sum(finite) / len(finite) if finite else 0.0
        return [
            _relative(before, after, floor)
            for before, after in zip(own, one.losses[:most], strict=False)
        ]

    # -- gradients -------------------------------------------------------------------------------

    def _gradient(self, least: float | None) -> Found:
        """Compare the first gradients. least: how far they may part; None for any distance at which
        they have the same direction and length, nearly."""
        name = "the first gradients"
        own = _whole(self._base[0].gradients)
        found = _whole(self._other.gradients)
        if own is None or found is None or len(own[1]) != len(found[1]):
            return name, None, "no gradients lay ready at the first step"
        missing = _missing(self._base[0].gradients, self._other.gradients)
        if missing is not None:
            return name, False, missing
        ratio, cosine, distance = _apart(own, found)
        said = f"gradient norm times {ratio:.4g}, cosine {cosine:.4f} at the first step"
        straight = _LEAST_RATIO <= ratio <= _MOST_RATIO and cosine >= _LEAST_COSINE
        if least is None and straight:
            return name, True, said
        allowed = self._allowed(least or 0.0, lambda one: _distance(own, one))
        passed = distance <= allowed and (straight or least is None)
        return name, passed, f"{said}; off by {distance:.1e}, where {allowed:.1e} is within it"

    def _buffers_close(self, least: float) -> Found:
        own = self._base[0].buffers_early
        common = [name for name in own if name in self._other.buffers_early]
        if not common:
            return "the model's buffers", None, "the model holds none, or they were not seen"

        def off(one: TrainingTrace) -> float | None:
            parted = [
                _relative(own[name], one.buffers_early[name], 1e-3)
                for name in common
                if name in one.buffers_early
            ]
            return max(parted, default=None)

        said = "after 3 steps the sum of a buffer is off by {:.1e}"
        return self._told("the model's buffers", least, off, said)


_Whole = tuple[float, tuple[float, ...]]


def _whole(gradients: Sequence[GradientTrace]) -> _Whole | None:
    """Return norm and sketch of all optimizers' first gradients together; None of none."""
    norms = [one for each in gradients for one in each.norms if one is not None]
    if not norms:
        return None
    sketch = tuple(value for each in gradients for value in each.sketch)
    return math.sqrt(math.fsum(one * one for one in norms)), sketch


def _missing(own: Sequence[GradientTrace], other: Sequence[GradientTrace]) -> str | None:
    for one, two in zip(own, other, strict=False):
        for at, (before, after) in enumerate(zip(one.norms, two.norms, strict=False)):
            if (before is None) != (after is None):
                what = "has no gradient any more" if after is None else "has a gradient now"
                return f"first step: parameter {at} {what}"
    return None


def _apart(own: _Whole, other: _Whole) -> tuple[float, float, float]:
    """Return ratio of norms, cosine and relative distance of two gradients."""
    ratio = other[0] / own[0] if own[0] else (1.0 if not other[0] else math.inf)
    lengths = math.hypot(*own[1]) * math.hypot(*other[1])
    dot = math.fsum(a * b for a, b in zip(own[1], other[1], strict=True))
    cosine = dot / lengths if lengths else 1.0
    gap = math.hypot(*(a - b for a, b in zip(own[1], other[1], strict=True)))
    length = math.hypot(*own[1])
    return ratio, cosine, gap / length if length else gap


def _distance(own: _Whole, trace: TrainingTrace) -> float | None:
    other = _whole(trace.gradients)
    if other is None or len(other[1]) != len(own[1]):
        return None
    return _apart(own, other)[2]


def _relative(before: float, after: float, floor: float) -> float:
    if before == after or (math.isnan(before) and math.isnan(after)):
        return 0.0
    off = abs(before - after) / max(abs(before), floor, 1e-30)
    return off if math.isfinite(off) else math.inf


def _standard_error(own: Sequence[float], other: Sequence[float]) -> float:
    """Return the standard error of the mean difference of two series, pair by pair."""
    apart = [after - before for before, after in zip(own, other, strict=False)]
    if len(apart) < 2 or not all(map(math.isfinite, apart)):
        return 0.0
    return statistics.stdev(apart) / math.sqrt(len(apart))


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
