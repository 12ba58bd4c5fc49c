"""Shares of the run by phase, on the scale that findings use."""

from __future__ import annotations

from hotlap.diagnose.costs import OUTSIDE_STEPS, base_of
from hotlap.values.facts import Facts, Measured
from hotlap.values.phase import STEP_PHASES
from hotlap.values.summary import LoaderSummary, ProcessSummary

_BUSY = 0.15
"""Share of the cores in other programs' hands from which on times of threads tell little."""


def trainer_of(facts: Facts) -> ProcessSummary | None:
    """Return the training process that reports speak of: the lowest rank."""
    return facts.run.trainers[0] if facts.run.trainers else None


def run_share(facts: Facts, phase: str) -> float | None:
    """Return the share (0-1) of a run phase in the whole that findings refer to."""
    base = base_of(facts)
    part = facts.run.phases.get(phase)
    if base is None or part is None or part.ns is None:
        return None
    if not base.whole and phase in OUTSIDE_STEPS:
        return None
    return part.ns / base.ns


def step_share(facts: Facts, phase: str) -> float | None:
    """Return the share (0-1) of a step phase in the whole that findings refer to."""
    trainer, steps = trainer_of(facts), run_share(facts, "steps")
    if trainer is None or steps is None:
        return None
    part = trainer.step.phases.get(phase)
    if part is None or part.share is None:
        return None
    return steps * part.share


def phase_share(facts: Facts, phase: str) -> float | None:
    """Return the share of a step phase or a run phase."""
    return step_share(facts, phase) if phase in STEP_PHASES else run_share(facts, phase)


def training_loader(facts: Facts) -> LoaderSummary | None:
    """Return the loader that feeds the training: the one with most batches among those known."""
    trainer = trainer_of(facts)
    if trainer is None:
        return None
    loaders = [one for one in trainer.loaders if one.role == "training"]
    return max(loaders, key=lambda one: one.batches, default=None)


def is_cpu(facts: Facts) -> bool:
    """Tell whether the training runs on the host's processor."""
    trainer = trainer_of(facts)
    return trainer is not None and (trainer.device or "cpu").startswith("cpu")


def steps_of(facts: Facts) -> int:
    """Return how many steps the watched trial made."""
    trainer = trainer_of(facts)
    return trainer.step.steps if trainer else 0


def floor_of(facts: Facts) -> float:
    """Return the relative difference below which nothing can be told apart (never under 2 %)."""
    return max(0.02, facts.noise.value if isinstance(facts.noise, Measured) else 0.0)


def busy_words(facts: Facts) -> str | None:
    """Return in words that other programs use the cores or the GPUs of this training; None if they
    do not."""
    others = facts.run.machine.others_cpu_share
    if others is not None and others >= _BUSY:
        return f"other programs use {others * 100:.0f} % of the cores that this training may use"
    if any(gpu.get("others") for gpu in facts.run.machine.gpus):
        return "other programs compute on the GPU that this training uses"
    return None
