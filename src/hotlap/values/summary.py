"""What a report shows: the account of one run, ready to be printed or written as JSON.

``None`` means not measured; the reason stands in ``RunSummary.not_measured``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hotlap.values.record import Place


@dataclass(frozen=True)
class Part:
    """A part of a whole: nanoseconds, and the share of the whole (0-1)."""

    ns: int | None
    share: float | None


@dataclass(frozen=True)
class StepSummary:
    """Steps of one process in steady state.

    steps: all steps of the run; steady_steps: those that the figures rest on.
    rule: what ends a step. ticks_per_step: optimizer steps in one step (2 for a plain GAN).
    median_ns, p10_ns, p90_ns: step time in steady state. phases: per step phase, mean
    nanoseconds per step and share of the step. device: the same by the device's clock.
    cpu_share: CPU time of the training thread over wall time.
    """

    rule: str
    steps: int
    steady_steps: int
    warm_up_steps: int
    ticks_per_step: float
    median_ns: int | None
    p10_ns: int | None
    p90_ns: int | None
    phases: dict[str, Part]
    samples_per_s: float | None
    cpu_share: float | None
    device: dict[str, Part] = field(default_factory=dict)
    mean_ns: int | None = None
    """Mean step time in steady state: what the phases add up to."""


@dataclass(frozen=True)
class LoaderSummary:
    """One loader: where it is made, and what the time of preparing its batches is.

    split: per name of ``WORKER_SPLIT``, nanoseconds per batch and share of a batch's time.
    upper_bound: the ``blocked`` part contains waiting for a core (the kernel tells no more).
    """

    ordinal: int
    dataset: str
    place: Place | None
    role: str
    batch_size: int | None
    workers: int
    batches: int
    batch_ns: int | None
    slowest_ns: int | None
    split: dict[str, Part]
    upper_bound: bool
    unpack_ns: int | None
    asked_bytes: int | None
    disk_bytes: int | None
    iterable: bool = False


@dataclass(frozen=True)
class TouchSummary:
    """Calls of one kind from one of the user's lines, per step of the run."""

    family: str
    kind: str
    place: Place | None
    count: int
    per_step: float | None
    ns_per_step: float | None
    share: float | None


@dataclass(frozen=True)
class ProcessSummary:
    """One training process (a rank) of the run."""

    pid: int
    host: str
    rank: int | None
    local_rank: int | None
    world_size: int | None
    torch: str | None
    device: str | None
    phases: dict[str, Part]
    step: StepSummary
    loaders: tuple[LoaderSummary, ...]
    touches: tuple[TouchSummary, ...]


@dataclass(frozen=True)
class MachineSummary:
    """The machine while steps ran. Shares are of what is allowed, not of what is visible."""

    facts: dict[str, Any] = field(default_factory=dict)
    cores_allowed: float | None = None
    cores_visible: int | None = None
    cpu_share: float | None = None
    busiest_core_share: float | None = None
    tree_rss_bytes: int | None = None
    disk_read_bytes_per_s: float | None = None
    disk_write_bytes_per_s: float | None = None
    net_bytes_per_s: float | None = None
    pressure: dict[str, float | None] = field(default_factory=dict)
    throttled_share: float | None = None
    swap_in_bytes_per_s: float | None = None
    shm_free_bytes: int | None = None
    gpus: tuple[dict[str, Any], ...] = ()
    samples: int = 0
    others_cpu_share: float | None = None
    """Of ``cpu_share``, what processes outside of the run used."""


@dataclass(frozen=True)
class PlanSummary:
    """What became of the plan that a run applied.

    file: its name. acted, idle: by knob, the proof in words. unheard: knobs of which no training
    process has said anything. left_out: knobs that were not applied, and why. differences: between
    the machine that it was measured on and this one. step: ``inside`` the band, ``above``,
    ``below``, or None where that is not known; band_ns: of the mean step.
    """

    file: str
    acted: dict[str, str]
    idle: dict[str, str]
    unheard: tuple[str, ...]
    left_out: dict[str, str]
    differences: tuple[str, ...]
    step: str | None
    band_ns: tuple[int, int] | None


@dataclass(frozen=True)
class RunSummary:
    """The whole run. ``trainers`` is empty when no process trained; ``absence`` says why."""

    id: str
    command: tuple[str, ...]
    hotlap_version: str
    started: str
    finished: bool
    exit_code: int | None
    wall_ns: int | None
    phases: dict[str, Part]
    horizon_steps: int | None
    horizon_source: str
    trainers: tuple[ProcessSummary, ...]
    machine: MachineSummary
    standing_out: tuple[str, ...]
    """The one or two things worth a look, as sentences."""
    not_measured: tuple[tuple[str, str], ...]
    faults: tuple[str, ...]
    absence: str | None
    plan: PlanSummary | None = None
    """None in a run without one."""
