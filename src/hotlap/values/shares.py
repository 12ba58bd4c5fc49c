"""Shares of the run by phase, on the scale that findings and knobs use."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hotlap.values.facts import Facts, Measured
from hotlap.values.phase import STEP_PHASES
from hotlap.values.summary import LoaderSummary, ProcessSummary

OUTSIDE_STEPS: Final = ("start_up", "shut_down")


@dataclass(frozen=True)
class Base:
    """What shares refer to. whole: the run as the user would run it; else its steady state."""

    ns: int
    whole: bool

    @property
    def words(self) -> str:
        """Return the name of the whole, for sentences."""
        return "the run" if self.whole else "the training time"


def base_of(facts: Facts) -> Base | None:
    """Return what shares refer to: the whole run, or the time between first and last step.

    None where neither is known.
    """
    if facts.whole_run and facts.run.wall_ns:
        return Base(facts.run.wall_ns, whole=True)
    parts = [
        part.ns for name, part in facts.run.phases.items() if name not in OUTSIDE_STEPS and part.ns
    ]
    return Base(sum(parts), whole=False) if parts else None


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


def share_of(facts: Facts, *phases: str) -> float | None:
    """Return the share of several phases together; None where none of them is known."""
    known = [share for name in phases if (share := phase_share(facts, name)) is not None]
    return sum(known) if known else None


def training_loader(facts: Facts) -> LoaderSummary | None:
    """Return the loader that feeds the training: the one with most batches among those known."""
    trainer = trainer_of(facts)
    if trainer is None:
        return None
    loaders = [one for one in trainer.loaders if one.role == "training"]
    return max(loaders, key=lambda one: one.batches, default=None)


def training_rate(facts: Facts) -> float | None:
    """Return the samples per second that the training reaches as it stands."""
    trainer = trainer_of(facts)
    return trainer.step.samples_per_s if trainer is not None else None


def is_cpu(facts: Facts) -> bool:
    """Tell whether the training runs on the host's processor."""
    trainer = trainer_of(facts)
    return trainer is not None and (trainer.device or "cpu").startswith("cpu")


def is_cuda(facts: Facts) -> bool:
    """Tell whether the training runs on a CUDA device."""
    trainer = trainer_of(facts)
    return trainer is not None and (trainer.device or "").startswith("cuda")


def floor_of(facts: Facts) -> float:
    """Return the relative difference below which nothing can be told apart (never under 2 %)."""
    return max(0.02, facts.noise.value if isinstance(facts.noise, Measured) else 0.0)


def cores_of_rank(facts: Facts) -> int:
    """Return the whole cores that quota and affinity leave to one of the ranks on this machine."""
    allowed = facts.run.machine.cores_allowed or facts.run.machine.cores_visible or 1
    hosts = [one.host for one in facts.run.trainers]
    ranks = max((hosts.count(host) for host in set(hosts)), default=1)
    if any(one.world_size in (None, 1) for one in facts.run.trainers):
        ranks = 1  # trainings one after the other
    return max(1, int(allowed / ranks + 0.01))
