"""What the trials after the first add to the facts: ceilings, worker curve, operators."""

from __future__ import annotations

from dataclasses import replace

from hotlap.experiment.ceilings import ceilings, curve
from hotlap.experiment.cold_and_warm import cross_checked, storage
from hotlap.experiment.plans import training_loader
from hotlap.experiment.trials import Trial
from hotlap.experiment.watched import trainer
from hotlap.experiment.windows import results, why_none
from hotlap.values.facts import Facts, Measured, Missing
from hotlap.values.shares import cores_of_rank

_NO_LOADER = "no batch of a torch DataLoader was seen: there is nothing to replay or to drain"


def with_ceilings(facts: Facts, trial: Trial) -> Facts:
    """Return the facts with what each part would reach alone, or why that is not known."""
    process = trainer(trial.record) if trial.record is not None else None
    loader = training_loader(facts)
    if loader is None or process is None:
        return without_ceilings(facts, _NO_LOADER if process is not None else trial.why_not())
    measured = process.windows_measured
    found = ceilings(measured, loader.workers, float(cores_of_rank(facts)), process.fetches)
    compared = storage(measured)
    return replace(
        facts,
        compute_per_s=found.compute_per_s,
        loader_per_s=found.loader_per_s,
        prep_per_s=found.prep_per_s,
        fetch_per_s=cross_checked(found.fetch_per_s, compared),
        curve=curve(measured),
        storage=compared,
    )


def without_ceilings(facts: Facts, because: str) -> Facts:
    """Return the facts with the reason why no part was measured alone."""
    missing = Missing(because)
    return replace(
        facts,
        compute_per_s=missing,
        loader_per_s=missing,
        prep_per_s=missing,
        fetch_per_s=missing,
        storage=missing,
    )


def with_operators(facts: Facts, trial: Trial) -> Facts:
    """Return the facts with the operators that the user's lines call, or why they are not known."""
    process = trainer(trial.record) if trial.record is not None else None
    if process is None or not process.operators:
        because = why_none(results(trial), "operators", trial)
        return replace(facts, operators=Missing(because))
    origin = "a few steps under torch's profiler"
    return replace(facts, operators=Measured(process.operators, origin))
