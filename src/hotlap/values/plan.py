"""A plan: which knobs are set to what, for one machine and one software, and what they brought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hotlap.values.comparison import Interval
from hotlap.values.finding import Bounds


@dataclass(frozen=True)
class Choice:
    """One knob of a plan.

    value: a JSON value. numerics: of ``values.knob.NUMERICS``. predicted: speed-up before it was
    tried. measured: the speed-up that it brought on top of those before it; None where it was not
    measured alone. proof: what showed that it acted, in words. environment: variables that have to
    be set before the process starts. snippet: the same change as code.
    """

    knob: str
    value: Any
    numerics: str
    predicted: Bounds
    measured: Interval | None
    proof: str
    environment: Mapping[str, str] = field(default_factory=dict)
    snippet: str = ""


@dataclass(frozen=True)
class Plan:
    """What ``hotlap run --plan`` applies.

    choices: in the order in which they were found. gain: all of them together against none, time
    before over time after; None where that was not measured. step_ns: between what the mean step
    under the plan lies, which is what ``run`` holds its own steps against; None if not known.
    fingerprint: what the figures were measured on (``tune.fingerprint``). equivalence: what was
    found of the numbers, in words. command: as the user wrote it, redacted. made: ISO 8601.
    """

    choices: tuple[Choice, ...]
    gain: Interval | None
    step_ns: tuple[int, int] | None
    fingerprint: Mapping[str, Any]
    equivalence: str
    command: tuple[str, ...]
    made: str
    hotlap_version: str

    @property
    def settings(self) -> dict[str, Any]:
        """Return what the inside is told: value by knob."""
        return {one.knob: one.value for one in self.choices}

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables of all knobs together."""
        return {key: value for one in self.choices for key, value in one.environment.items()}
