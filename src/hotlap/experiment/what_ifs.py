"""One change against the unchanged command, from windows that lay before and after each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hotlap.experiment.trials import Trial
from hotlap.experiment.watched import trainer
from hotlap.experiment.windows import of_kind, results, why_none
from hotlap.stats.ratio import ratio
from hotlap.values.facts import WhatIf

_CLEAR: Final = 1.3
"""Steps that are so many times faster are no accident of where a process ran."""


def what_if(
    change: str, value: Any, references: Sequence[Trial], trials: Sequence[Trial]
) -> WhatIf | str:
    """Return how much faster the steps were with the change, or in words why it is not known.

    references: trials of the unchanged command. trials: one or more of the changed one.
    """
    changed = [one for each in trials for one in of_kind(results(each), "baseline")]
    if not changed:
        return why_none(results(trials[0]), "baseline", trials[0])
    unchanged = [one.step_ns for each in references for one in of_kind(results(each), "baseline")]
    if not unchanged:
        return "no window of the unchanged command could be measured beside it"
    compared = ratio(unchanged, [one.step_ns for one in changed])
    if compared is None:
        return "too few steps could be measured"
    return WhatIf(
        change, value, compared.mid, compared.low, compared.high, acted(trials[0], change)
    )


def is_doubtful(found: WhatIf) -> bool:
    """Tell whether a change helped by no more than two runs of one command may differ."""
    return found.acted and found.low > 1.0 and found.ratio < _CLEAR


def acted(trial: Trial, change: str) -> bool:
    """Tell whether the change took place: the process that trained says so itself."""
    process = trainer(trial.record) if trial.record is not None else None
    proof = process.settings_proof.get(change) if process is not None else None
    return isinstance(proof, dict) and bool(proof.get("acted"))
