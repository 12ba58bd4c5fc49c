"""The results of windows that the processes of a trial wrote."""

from __future__ import annotations

from collections.abc import Iterable

from hotlap.experiment.trials import Trial
from hotlap.experiment.watched import trainer
from hotlap.values.trial import WindowResult


def results(trial: Trial) -> tuple[WindowResult, ...]:
    """Return what the windows of the process that stands for the run measured, in order."""
    process = trainer(trial.record) if trial.record is not None else None
    return process.windows_measured if process is not None else ()


def of_kind(found: Iterable[WindowResult], kind: str) -> list[WindowResult]:
    """Return the windows of a kind that measured something."""
    return [one for one in found if one.kind == kind and (one.step_ns or one.batches)]


def why_none(found: Iterable[WindowResult], kind: str, trial: Trial) -> str:
    """Say in words why a kind of window measured nothing."""
    for one in found:
        if one.kind == kind and one.ended_by.startswith("failed: "):
            return one.ended_by.removeprefix("failed: ")
        if one.kind == kind:
            notes = "; ".join(one.notes)
            return notes or f"it ended before it had measured anything ({one.ended_by})"
    return trial.why_not()
