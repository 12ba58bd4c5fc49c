"""One process's steps as a report shows them: spread, phases, rate."""

from __future__ import annotations

from hotlap.account.loaders import match
from hotlap.account.missing import Missing
from hotlap.account.run_phases import part
from hotlap.account.steady import Steps
from hotlap.values.phase import STEP_PHASES
from hotlap.values.record import Loader, Process
from hotlap.values.summary import Part, StepSummary


def summarise_steps(process: Process, steps: Steps, missing: Missing) -> StepSummary:
    """Return the steps of a process; figures are of steady state, counts of the whole run."""
    return StepSummary(
        rule=steps.rule,
        steps=steps.count,
        steady_steps=steps.steady,
        warm_up_steps=steps.warm_up,
        ticks_per_step=steps.ticks / steps.count if steps.count else 1.0,
        median_ns=steps.median_ns,
        p10_ns=steps.p10_ns,
        p90_ns=steps.p90_ns,
        phases=_phases(process, steps, missing),
        samples_per_s=_samples_per_s(process, steps, missing),
        cpu_share=_cpu_share(steps, missing),
        device=_device(process, steps, missing),
        mean_ns=None if steps.mean_ns is None else round(steps.mean_ns),
    )


def _phases(process: Process, steps: Steps, missing: Missing) -> dict[str, Part]:
    """Return mean nanoseconds of each phase in a steady step, and its share of the step."""
    mean = steps.mean_ns
    if mean is None:
        return {name: Part(None, None) for name in STEP_PHASES}
    spent = zip(STEP_PHASES, steps.steady_accounts, strict=False)
    phases = {name: part(round(ns / steps.steady), mean) for name, ns in spent}
    for name, because in (
        ("data_wait", _why_no_data_wait(process)),
        ("transfer", _why_no_transfer(process)),
        ("communication", _why_no_communication(process)),
    ):
        if because is not None and not phases[name].ns:
            phases[name] = Part(None, None)
            missing.note(name, because)
    return phases


def on_host(process: Process) -> bool:
    """Tell whether the process trained on the CPU, as far as is known."""
    return process.device is None or process.device.startswith("cpu")


def _why_no_data_wait(process: Process) -> str | None:
    if process.loaders:
        return None
    before = [w.before_forward_ns for w in process.windows if w.before_forward_ns is not None]
    ticks = sum(window.ticks for window in process.windows)
    because = "no DataLoader was used: where batches come from is part of other host code"
    if not before or not ticks:
        return because
    mean = sum(before) / ticks
    told = f"{mean / 1e6:.3g} ms" if mean >= 1e6 else f"{mean / 1e3:.3g} µs"
    return f"{because}, of which {told} a step lie before the forward pass"


def _why_no_transfer(process: Process) -> str | None:
    if on_host(process):
        return "the model runs on the CPU, so nothing moves between devices"
    return None


def _why_no_communication(process: Process) -> str | None:
    if any(touch.family == "communication" for touch in process.touches):
        return None
    if (process.world_size or 1) > 1:
        return "gradients are reduced while backward runs, and their time is inside it"
    return "one process trains, so there is nobody to communicate with"


def _cpu_share(steps: Steps, missing: Missing) -> float | None:
    if steps.cpu_ns is None or not steps.cpu_wall_ns:
        if steps.count:
            missing.note("CPU share of the training thread", "the system gave no thread clock")
        return None
    return steps.cpu_ns / steps.cpu_wall_ns


def _device(process: Process, steps: Steps, missing: Missing) -> dict[str, Part]:
    """Return device time of each sampled phase per step, and its share of a step's wall time."""
    if process.device_phases:
        mean = steps.mean_ns
        return {
            one.phase: part(round(one.ns / one.steps), mean)
            for one in process.device_phases
            if one.steps
        }
    if on_host(process):
        missing.note("device time", "no CUDA device was used")
    else:
        because = process.facts.get("device_clock")
        missing.note("device time", because or "no timing event of the device was resolved")
    return {}


def _samples_per_s(process: Process, steps: Steps, missing: Missing) -> float | None:
    """Return samples per second over steady steps.

    Batches are counted as the loop takes them; samples in a batch are what the training loaders
    really gave, or else the batch size that they were made with.
    """
    if not steps.count:
        return None
    loaders = [loader for loader in process.loaders if loader.role == "training"]
    if not loaders:
        loaders = list(process.loaders) if len(process.loaders) == 1 else []
    because = None
    size = _samples_per_batch(process, loaders)
    if not process.loaders or not steps.steady_batches:
        because = "no batch came from a DataLoader"
    elif size is None:
        because = "the batches' sizes are not known, or differ between loaders"
    if because is not None or size is None or not steps.steady_wall_ns:
        missing.note("samples per second", because or "no steady step was measured")
        return None
    return steps.steady_batches * size / (steps.steady_wall_ns / 1e9)


def _samples_per_batch(process: Process, loaders: list[Loader]) -> float | None:
    groups = match(process)
    sizes: set[float | None] = set()
    for loader in loaders:
        fetches = groups.get(loader.ordinal, [])
        samples = [fetch.samples for fetch in fetches if fetch.samples is not None]
        batches = sum(fetch.batches for fetch in fetches)
        if batches and len(samples) == len(fetches):
            sizes.add(sum(samples) / batches)
        else:
            sizes.add(float(loader.batch_size) if loader.batch_size else None)
    return sizes.pop() if len(sizes) == 1 else None
