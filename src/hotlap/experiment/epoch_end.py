"""What a trial that ended an epoch early says of the ends of whole ones."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from hotlap.experiment.trials import Trial
from hotlap.experiment.watched import trainer
from hotlap.experiment.windows import results, why_none
from hotlap.values.facts import EpochEnd, Facts, Measured, Missing
from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import Process

PHASES: Final = ("evaluation", "checkpoint", "epoch_edge")
"""What lies between the steps of two epochs. What else a step has, it has at any time."""
_AT_ALL: Final = 10_000_000


def with_epoch_end(facts: Facts, steps: float, trial: Trial | str) -> Facts:
    """Return the facts with what an epoch's end brings, or why that is not known.

    steps: of a whole epoch. trial: the one that came to an end, or in words why there is none.
    """
    found = Missing(trial) if isinstance(trial, str) else _seen(facts, steps, trial)
    return replace(facts, epoch_end=found)


def _seen(facts: Facts, steps: float, trial: Trial) -> Measured[EpochEnd] | Missing:
    process = trainer(trial.record) if trial.record is not None else None
    window = next((one for one in results(trial) if one.kind == "epoch_end"), None)
    if process is None or window is None or window.ended_by.startswith("failed: "):
        return Missing(_why_not(trial))
    if window.notes:
        return Missing("; ".join(window.notes))
    whole = window.ended_by == "steps"
    accounts = window.accounts if whole else _until_the_end(process)
    known = {name: accounts[ACCOUNTS.index(name)] for name in PHASES}
    # What was watched already is not counted twice.
    phases = {name: ns for name, ns in known.items() if ns and not _watched(facts, name)}
    if not whole and not trial.is_sound and not phases:
        return Missing(_why_not(trial))
    if sum(phases.values()) < _AT_ALL:
        return Missing("nothing that takes time was seen to come after a shortened epoch")
    end = EpochEnd(
        steps, phases, tuple(one for one in process.profile if one.phase in phases), whole
    )
    return Measured(end, "a trial in which an epoch was ended before its time")


def _why_not(trial: Trial) -> str:
    why = why_none(results(trial), "epoch_end", trial) if trial.is_sound else trial.why_not()
    return f"an epoch was ended before its time, which not every script bears: {why}"


def _watched(facts: Facts, phase: str) -> bool:
    part = facts.run.phases.get(phase)
    return part is not None and bool(part.ns)


def _until_the_end(process: Process) -> tuple[int, ...]:
    """Return the accounts after the last step that was recorded."""
    return process.after_last_tick or (0,) * len(ACCOUNTS)
