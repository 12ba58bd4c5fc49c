"""From what was kept to a plan, and from a plan to what a user can paste."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

import hotlap
from hotlap.values.arm import ArmRun
from hotlap.values.comparison import Interval
from hotlap.values.phase import STEP_PHASES
from hotlap.values.plan import Choice, Plan
from hotlap.values.tuning import Sameness, Tried

_MARGIN: Final = 0.15


def plan_of(
    kept: Sequence[Tried],
    environment: Callable[[str, Any], Mapping[str, str]],
    gain: Interval,
    runs: Sequence[ArmRun],
    sameness: Sameness,
    fingerprint: Mapping[str, Any],
    command: Sequence[str],
) -> Plan:
    """Return the plan of what was kept.

    environment: variables that a knob needs, by (knob, value). runs: those under the plan, for the
    band of its step times. command: as the user wrote it, redacted.
    """
    choices = tuple(
        Choice(
            one.knob,
            one.value,
            one.numerics,
            one.predicted,
            one.measured,
            one.proof,
            dict(environment(one.knob, one.value)),
            one.snippet,
        )
        for one in kept
    )
    return Plan(
        choices=choices,
        gain=gain,
        step_ns=band(runs),
        fingerprint=fingerprint,
        equivalence=sameness.word,
        command=tuple(command),
        made=datetime.now().astimezone().isoformat(timespec="seconds"),
        hotlap_version=hotlap.__version__,
    )


def band(runs: Sequence[ArmRun]) -> tuple[int, int] | None:
    """Return between what the mean step of a run under the plan lies, in nanoseconds.

    It is what the confirming runs took for a step, without what lies between steps, and 15 % on
    either side: what a warmer machine or a full disk changes. None for no runs.
    """
    means = [
        sum(one.accounts.get(name, 0) for name in STEP_PHASES) / one.steps
        for one in runs
        if one.steps and one.accounts
    ]
    if not means:
        return None
    return round((1 - _MARGIN) * min(means)), round((1 + _MARGIN) * max(means))
