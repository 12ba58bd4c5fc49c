"""What diagnosis says: causes, in order of what they cost, and one verdict."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

BOUNDS: Final = ("input", "compute", "host", "communication", "memory", "balanced", "unknown")


@dataclass(frozen=True)
class Bounds:
    """A figure with a lower and an upper bound; None where it cannot be told."""

    low: float | None
    high: float | None


@dataclass(frozen=True)
class Location:
    """A line of the user's source, with its share (0-1) of the finding's time."""

    file: str
    line: int
    function: str
    share: float | None = None


@dataclass(frozen=True)
class Evidence:
    """One figure that the finding rests on. value None: not measured."""

    name: str
    value: Any
    unit: str


@dataclass(frozen=True)
class Remedy:
    """What to do. kind: ``knob``, ``code`` or ``environment``.

    knobs: names of knobs that answer. changes: what it changes besides speed, in words.
    """

    kind: str
    knobs: tuple[str, ...]
    changes: str


@dataclass(frozen=True)
class Finding:
    """A cause. recoverable_share: of the whole run at the horizon, else of steady state.

    ``scope``: step, epoch or run. ``status``: suspected (from one run) or proven (by experiment).
    ``say``: what it is and what to do, two sentences.
    ``covers``: ``file:line`` keys of the profile that it explains; a finding that covers the
    same lines is not said twice.
    """

    code: str
    name: str
    phase: str
    scope: str
    status: str
    recoverable_share: Bounds
    locations: tuple[Location, ...]
    evidence: tuple[Evidence, ...]
    remedy: Remedy
    say: str
    predicted_speedup: Bounds = Bounds(None, None)
    covers: frozenset[str] = frozenset()
    specific: bool = True
    """False for the general finding, which a specific one of its own evidence outranks."""
    reason: bool = False
    """True where it says why the lines run needlessly: it outranks what says what they do."""

    @property
    def severity(self) -> str:
        """Return high (at least 10 % recoverable), medium (3 to 10 %) or low."""
        most = self.recoverable_share.high or 0.0
        return "high" if most >= 0.10 else "medium" if most >= 0.03 else "low"


@dataclass(frozen=True)
class Clear:
    """The rule looked and found nothing of its kind."""

    because: str


@dataclass(frozen=True)
class Unknown:
    """The rule cannot tell, and why."""

    because: str


@dataclass(frozen=True)
class Diagnosis:
    """The verdict and the findings, ranked. bound: one of ``BOUNDS``.

    next_ceiling: what would bound the training if the findings were mended, in words.
    together: predicted speed-up of all findings mended.
    """

    bound: str
    headline: str
    findings: tuple[Finding, ...]
    unknown: tuple[tuple[str, str], ...]
    next_ceiling: str | None
    together: Bounds
    noise_floor: float | None
