"""From what was kept to a plan, and from a plan to what a user can paste."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import hotlap
from hotlap.stats.quantiles import quantile
from hotlap.values.arm import ArmRun
from hotlap.values.comparison import Interval
from hotlap.values.plan import Choice, Plan
from hotlap.values.tuning import Sameness, Tried


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

    From the 2.5th to the 97.5th percentile of the runs' stretches, so that a stretch of an
    evaluation is in it, and at least 10 % around what whole runs took; None for none.
    """
    means = [one.step_ns for one in runs if one.step_ns is not None]
    if not means:
        return None
    each = [
        span / (one.steps / len(one.spans_ns)) for one in runs for span in one.spans_ns if one.steps
    ]
    low = min(quantile(each, 0.025) or min(means), 0.9 * min(means))
    high = max(quantile(each, 0.975) or max(means), 1.1 * max(means))
    return round(low), round(high)
