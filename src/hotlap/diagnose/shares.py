"""Shares of the run by phase, and what makes them doubtful."""

from __future__ import annotations

from hotlap.values.facts import Facts
from hotlap.values.shares import (
    floor_of,
    is_cpu,
    phase_share,
    run_share,
    step_share,
    trainer_of,
    training_loader,
    training_rate,
)

__all__ = (
    "busy_words",
    "floor_of",
    "is_cpu",
    "phase_share",
    "run_share",
    "step_share",
    "steps_of",
    "trainer_of",
    "training_loader",
    "training_rate",
)

_BUSY = 0.15
"""Share of the cores in other programs' hands from which on times of threads tell little."""


def steps_of(facts: Facts) -> int:
    """Return how many steps the watched trial made."""
    trainer = trainer_of(facts)
    return trainer.step.steps if trainer else 0


def busy_words(facts: Facts) -> str | None:
    """Return in words that other programs use the cores or the GPUs of this training; None if they
    do not."""
    others = facts.run.machine.others_cpu_share
    if others is not None and others >= _BUSY:
        return f"other programs use {others * 100:.0f} % of the cores that this training may use"
    if any(gpu.get("others") for gpu in facts.run.machine.gpus):
        return "other programs compute on the GPU that this training uses"
    return None
