"""All that a diagnosis could not measure, with the reasons, each thing said once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from hotlap.report.limits import knee
from hotlap.values.facts import Facts, Missing
from hotlap.values.finding import Diagnosis

FIELDS: Final = {
    "compute_per_s": "ceilings.compute_per_s",
    "loader_per_s": "ceilings.loader_per_s",
    "prep_per_s": "ceilings.prep_per_s",
    "fetch_per_s": "ceilings.fetch_per_s",
    "noise": "noise_floor.ratio",
    "profile": "profile",
    "operators": "operators",
}
"""Fields of ``Facts`` that may be missing, and their names in the JSON form."""

NAMED: Final = {
    "ceilings.compute_per_s": "the ceiling of compute",
    "ceilings.loader_per_s": "the ceiling of the loader",
    "ceilings.prep_per_s": "the ceiling of preparing",
    "ceilings.fetch_per_s": "the ceiling of fetching",
    "storage": "cold against warm storage",
    "noise_floor.ratio": "the noise floor",
    "epoch_end": "the end of an epoch",
    "profile": "a profile by lines",
    "operators": "a profile by operators",
    "workers.knee": "where more workers stop helping",
}
"""The same in words."""


def not_measured(facts: Facts, diagnosis: Diagnosis) -> list[tuple[str, str]]:
    """Return pairs of what was not measured and why; ``what`` is a name of the JSON form.

    In this order: what the experiments say themselves, other facts that are missing, what the
    watched run did not measure, and the rules that could not tell (by their codes).
    """
    told = [(FIELDS.get(what, what), because) for what, because in facts.not_measured]
    named = {what for what, _ in told}
    missing = [
        (name, getattr(facts, field).because)
        for field, name in FIELDS.items()
        if isinstance(getattr(facts, field), Missing) and name not in named
    ]
    pairs = [
        *told,
        *missing,
        *_no_knee(facts),
        *_no_storage(facts),
        *facts.run.not_measured,
        *diagnosis.unknown,
    ]
    return list(dict.fromkeys(pairs))


def _no_knee(facts: Facts) -> list[tuple[str, str]]:
    if knee(facts.curve) is not None:
        return []
    return [("workers.knee", "the loader was not tried with several numbers of workers")]


def _no_storage(facts: Facts) -> list[tuple[str, str]]:
    """Say why cold and warm were not compared, where the input is worth that question."""
    if not facts.curve or not isinstance(facts.storage, Missing):
        return []
    return [("storage", facts.storage.because)]


def by_reason(pairs: Sequence[tuple[str, str]]) -> dict[str, list[str]]:
    """Return what was not measured, grouped by its reason, in the order of first mention."""
    grouped: dict[str, list[str]] = {}
    for what, because in pairs:
        grouped.setdefault(because, []).append(what)
    return grouped
