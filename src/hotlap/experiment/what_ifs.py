"""One change against the unchanged command, from windows that lay before and after each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotlap.experiment.trials import Trial
from hotlap.experiment.watched import trainer
from hotlap.experiment.windows import of_kind, results, why_none
from hotlap.stats.ratio import ratio
from hotlap.values.facts import WhatIf


def what_if(change: str, value: Any, references: Sequence[Trial], trial: Trial) -> WhatIf | str:
    """Return how much faster the steps were with the change, or in words why it is not known.

    references: trials of the unchanged command.
    """
    changed = of_kind(results(trial), "baseline")
    if not changed:
        return why_none(results(trial), "baseline", trial)
    unchanged = [one.step_ns for each in references for one in of_kind(results(each), "baseline")]
    if not unchanged:
        return "no window of the unchanged command could be measured beside it"
    compared = ratio(unchanged, [one.step_ns for one in changed])
    if compared is None:
        return "too few steps could be measured"
    return WhatIf(change, value, compared.mid, compared.low, compared.high, acted(trial, change))


def acted(trial: Trial, change: str) -> bool:
    """Tell whether the change took place: the process that trained says so itself."""
    process = trainer(trial.record) if trial.record is not None else None
    proof = process.settings_proof.get(change) if process is not None else None
    return isinstance(proof, dict) and bool(proof.get("acted"))
