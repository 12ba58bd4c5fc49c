"""Compares what hotlap measured with what a script clocked itself: totals over the run.

A phase may differ by a tenth of itself or by a hundredth of the step, whichever is more; `other`
by three hundredths of the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hotlap.values.phase import ACCOUNTS, STEP_PHASES
from hotlap.values.record import Process
from hotlap.values.summary import ProcessSummary

OF_PHASE: Final = 0.10
OF_STEP: Final = 0.01
OTHER_OF_STEP: Final = 0.03
RUN_PHASE_NS: Final = 20_000_000

SEPARATE: Final[tuple[tuple[str, ...], ...]] = tuple((name,) for name in STEP_PHASES)


def together(*names: str) -> tuple[tuple[str, ...], ...]:
    """Return the step phases with these ones taken as one: what nobody can tell apart."""
    return (names, *((name,) for name in STEP_PHASES if name not in names))


def phase_totals(process: Process) -> dict[str, int]:
    """Return nanoseconds of every account, summed over all windows of the process."""
    sums = [sum(column) for column in zip(*(w.accounts for w in process.windows), strict=True)]
    return dict(zip(ACCOUNTS, sums, strict=True))


def log_totals(log: Mapping[str, Any]) -> dict[str, int]:
    """Return nanoseconds of every step phase, summed over the steps of a log."""
    return {name: sum(step.get(name, 0) for step in log["steps"]) for name in STEP_PHASES}


def step_differences(
    log: Mapping[str, Any],
    process: Process,
    groups: Sequence[Sequence[str]] = SEPARATE,
) -> list[str]:
    """Return the phases that disagree, each with both figures, in words."""
    theirs, ours = log_totals(log), phase_totals(process)
    whole = sum(theirs.values())
    found = []
    for group in groups:
        expected = sum(theirs[name] for name in group)
        allowed = max(OF_PHASE * expected, OF_STEP * whole)
        if "other" in group:
            allowed = OTHER_OF_STEP * whole
        found += _difference(
            " + ".join(group), expected, sum(ours[name] for name in group), allowed
        )
    return found


def run_differences(
    log: Mapping[str, Any],
    trainer: ProcessSummary,
    named: Mapping[str, Sequence[str]] | None = None,
) -> list[str]:
    """Return the run phases that disagree.

    named: what the script calls a run phase of ours, where the names differ.
    """
    found = []
    for name in ("evaluation", "checkpoint", "epoch_edge"):
        expected = sum(run_total(log, one) for one in (named or {}).get(name, (name,)))
        ours = trainer.phases[name].ns
        found += _difference(name, expected, ours, max(OF_PHASE * expected, RUN_PHASE_NS))
    return found


def run_total(log: Mapping[str, Any], name: str) -> int:
    """Return nanoseconds of one run phase in a log, as a reader should find them.

    Evaluation and checkpoints count wherever they are. What follows the last step is no edge, but
    the end of the run; starting workers before the first step is one, setting up is not.
    """
    run = log["run"]
    anywhere = name in ("evaluation", "checkpoint")
    until = float("inf") if anywhere else run["last_step_end_ns"]
    spans = sum(end - begin for phase, begin, end in run["spans"] if phase == name and end <= until)
    before = 0 if name == "set_up" else run["before_first_step"].get(name, 0)
    return int(spans + before)


def _difference(name: str, theirs: int, ours: int | None, allowed: float) -> list[str]:
    if ours is not None and abs(ours - theirs) <= allowed:
        return []
    said = "not measured" if ours is None else f"{ours / 1e6:.1f} ms"
    return [f"{name}: script {theirs / 1e6:.1f} ms, hotlap {said}, allowed {allowed / 1e6:.1f} ms"]
