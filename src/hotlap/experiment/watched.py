"""What one trial that ran as the user would run it says: the part of the facts that needs no more.

It is one record summed up (``account``), with the profile, the series of steps and the counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from hotlap.account.cycles import steps_of
from hotlap.account.steady import leading
from hotlap.account.summarise import summarise
from hotlap.account.trainers import chain_of, trainers_of
from hotlap.experiment.trials import Trial, absence_of
from hotlap.stats.histogram import quantile
from hotlap.values.facts import Facts, Measured, Missing
from hotlap.values.record import Process, Record
from hotlap.values.summary import RunSummary
from hotlap.values.trial import ProfileEntry

MOST_STEPS: Final = 4000
ORIGIN: Final = "the watched trial"


def watched(trial: Trial, stopped: bool, horizon: int | None) -> Facts | None:
    """Return the facts of a watched trial; None when nothing of it can be read.

    stopped: we ended it before its own end. horizon: steps of a whole run, if the user said.
    """
    record = trial.record
    if record is None:
        return None
    run = _run(trial, record, stopped, horizon)
    process = trainer(record)
    if process is None:
        return Facts(run=run)
    return Facts(
        run=run,
        whole_run=trial.is_sound and not stopped,
        profile=_profile(record, process),
        threads=tuple(process.profile_facts.get("threads", ())),
        step_series=series(process),
        samples_per_step=_samples_per_step(run),
        sample_ns=_sample_ns(process.sample_clock),
        defaults=dict(process.facts.get("switches") or {}),
        counts=counts(process),
    )


def trainer(record: Record) -> Process | None:
    """Return the process that stands for the run: the first trainer of the lowest rank."""
    trainers = trainers_of(record)
    return chain_of(trainers)[0] if trainers else None


def series(process: Process) -> tuple[int, ...]:
    """Return step times in order, evenly thinned to at most 4,000."""
    times = [step.wall_ns for step in leading(process, steps_of(process))]
    stride = -(-len(times) // MOST_STEPS) or 1
    return tuple(times[::stride])


def start_up_s(record: Record) -> float | None:
    """Return how long it took from the start of the command to the end of its first step.

    The first step pays for what happens once (compiling, for minutes), in every trial anew.
    """
    process = trainer(record)
    if process is None or not process.ticks:
        return None
    return max(0.0, (process.ticks[0].end_ns - record.spawn_ns) / 1e9)


def counts(process: Process) -> dict[str, float]:
    """Return what was counted: per step where the name says so, else over the whole trial."""
    steps = steps_of(process)
    found: dict[str, float] = {}
    if steps:
        number = len(steps)
        ticks = process.ticks
        found["steps"] = number
        found["forwards_per_step"] = sum(one.forwards for one in ticks) / number
        found["backwards_per_step"] = sum(one.backwards for one in ticks) / number
        found["batches_per_step"] = sum(one.batches for one in ticks) / number
    return found | _collected(process)


def _collected(process: Process) -> dict[str, float]:
    """Return what the garbage collector did after start-up, where nothing can be spared."""
    phases = process.collector.get("by_phase")
    if not isinstance(phases, dict):
        return {}
    later = [one for name, one in phases.items() if name != "start_up" and isinstance(one, dict)]
    found: dict[str, float] = {
        "gc_ns": sum(one.get("ns", 0) for one in later),
        "collections": sum(one.get("collections", 0) for one in later),
    }
    longest = process.collector.get("longest_ns")
    return found if longest is None else {**found, "gc_longest_ns": longest}


def _run(trial: Trial, record: Record, stopped: bool, horizon: int | None) -> RunSummary:
    run = summarise(record)
    if not any(one.step.steps for one in run.trainers):
        run = replace(run, absence=absence_of(trial) or run.absence)
    if horizon is not None:
        kept = tuple(pair for pair in run.not_measured if pair[0] != "horizon")
        return replace(
            run,
            horizon_steps=horizon,
            horizon_source="given by --horizon",
            not_measured=kept,
        )
    if stopped or not trial.is_sound:
        because = "the trial was ended before the run's own end; --horizon STEPS tells its length"
        return replace(
            run,
            horizon_steps=None,
            horizon_source="unknown",
            not_measured=(*run.not_measured, ("horizon", because)),
        )
    return run


def _profile(record: Record, process: Process) -> Measured[tuple[ProfileEntry, ...]] | Missing:
    """Return the profile of the process that stands for the run."""
    if process.profile:
        return Measured(process.profile, ORIGIN)
    others = [one for one in record.processes if one.profile]
    if others:
        return Missing("the process that trained was not sampled")
    return Missing("no stack was sampled in the trial")


def _samples_per_step(run: RunSummary) -> float | None:
    step = run.trainers[0].step if run.trainers else None
    if step is None or not step.samples_per_s or not step.mean_ns:
        return None
    return step.samples_per_s * step.mean_ns / 1e9


def _sample_ns(clock: Mapping[str, Any]) -> Mapping[str, int] | None:
    histogram = clock.get("histogram")
    if not histogram or not clock.get("count"):
        return None
    found = {
        name: round(value)
        for name, q in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
        if (value := quantile(histogram, q)) is not None
    }
    found["max"] = clock["slowest_ns"]
    found["mean"] = round(clock["total_ns"] / clock["count"])
    return found


def first_of(trials: Sequence[Trial], name: str) -> Trial | None:
    """Return the first trial of a name; None when there is none."""
    return next((trial for trial in trials if trial.name == name), None)
