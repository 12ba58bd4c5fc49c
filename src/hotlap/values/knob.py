"""What a knob may look at, and what it offers: one optimisation, before it is tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from hotlap.values.facts import Facts
from hotlap.values.finding import Bounds, Finding

NUMERICS: Final = ("identical", "rounding", "resampled", "reduced", "learning")
"""Classes of what a knob does to the numbers, the mildest first: bit for bit the same; the same
mathematics in another order; the same distribution with other random draws; lower precision; what
is learned changes."""


_UNTOLD: Final = Bounds(None, None)


def within(numerics: str, most: str) -> bool:
    """Tell whether a class is no stronger than the strongest that is allowed."""
    return NUMERICS.index(numerics) <= NUMERICS.index(most)


@dataclass(frozen=True)
class Case:
    """One training, as a knob sees it.

    findings: ranked, of the diagnosis of these facts. environ: the user's environment; what is set
    there is the user's word, and no knob overrides it. applied: knobs that are on already.
    """

    facts: Facts
    findings: tuple[Finding, ...]
    environ: Mapping[str, str]
    applied: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Offer:
    """A knob that could help here.

    values: what to try, the most promising first; JSON values. numerics: of ``NUMERICS``.
    predicted: speed-up of the run, where a finding or an experiment tells; None where nothing
    does. most: the largest speed-up that it could bring, since only that part of the time is its
    to save; None where it cannot be told. because: what in this training speaks for it, in words.
    """

    values: tuple[Any, ...]
    numerics: str
    because: str
    predicted: Bounds = _UNTOLD
    most: float | None = None


@dataclass(frozen=True)
class No:
    """A knob that does not apply.

    because: in words. hopeless: it could be tried, but is known to lose here (bf16 on a processor
    without it); the user may insist.
    """

    because: str
    hopeless: bool = False
