"""The parts of a report that its start-up form and its whole form share."""

from __future__ import annotations

import shlex
import signal
from collections.abc import Sequence
from typing import Final

from rich.text import Text

from hotlap.report.page import Page, Row
from hotlap.report.readable import readable
from hotlap.report.units import UNKNOWN, digits, duration, many, share, size, speed
from hotlap.values.phase import STEP_PHASES, WORKER_SPLIT
from hotlap.values.summary import (
    LoaderSummary,
    MachineSummary,
    Part,
    ProcessSummary,
    RunSummary,
    StepSummary,
)

NAMES: Final = {
    "data_wait": "waiting for data",
    "transfer": "transfer",
    "forward": "forward",
    "backward": "backward",
    "optimizer": "optimizer",
    "communication": "communication",
    "logging": "logging",
    "other": "other host code",
    "start_up": "start-up",
    "steps": "steps",
    "evaluation": "evaluation",
    "checkpoint": "checkpoints",
    "epoch_edge": "edges of epochs",
    "compile": "compilation",
    "shut_down": "shut-down",
    "blocked": "blocked",
    "cpu": "CPU",
    "runqueue": "waiting for a core",
    "collate": "collate",
    "ipc": "hand-over",
}
"""How phases and parts are called in text."""

STYLES: Final = {
    "data_wait": "yellow",
    "transfer": "magenta",
    "forward": "blue",
    "backward": "cyan",
    "optimizer": "green",
    "communication": "red",
    "logging": "bright_magenta",
    "other": "bright_black",
    "start_up": "bright_black",
    "steps": "green",
    "evaluation": "blue",
    "checkpoint": "magenta",
    "epoch_edge": "yellow",
    "compile": "cyan",
    "shut_down": "bright_black",
}

ENDS: Final = {
    "explicit": "a step ends at the mark in the code",
    "optimizer": "a step ends when the optimizer has stepped",
    "loader": "a step is one batch of the loader, because no optimizer stepped",
    "backward": "a step ends with each backward, because no optimizer stepped",
}

SMALL: Final = 0.01
"""Parts smaller than this share one line."""


def head(page: Page, summary: RunSummary) -> None:
    """Write the command and the name of the run."""
    command = readable(shlex.join(summary.command))
    page.ends(Text.assemble(("hotlap", "bold green"), "  ", (command, "bold")), summary.id)


def outcome(summary: RunSummary) -> str:
    """Return how the run ended, in words."""
    if not summary.finished:
        return "no end recorded (still going?)"
    code = summary.exit_code
    if code is None:
        return "ended, exit code unknown"
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        return f"killed by {name}"
    return "ended well" if code == 0 else f"ended with exit code {code}"


def phase_lines(
    page: Page,
    phases: dict[str, Part],
    small: float,
    more: Sequence[Row],
    falling: bool = False,
) -> None:
    """Write a bar for each part that is there, and the names of small ones in one line.

    small: share below which a part gets no bar. more: rows that follow the parts.
    falling: each bar begins where the one before it ended.
    """
    rows, little = [], []
    for name, part in phases.items():
        if not part.ns or part.share is None:
            continue
        called = NAMES.get(name, name)
        if part.share < small:
            little.append(called)
        else:
            row = Row(called, part.share, share(part.share), duration(part.ns), STYLES[name])
            rows.append(row)
    page.bars("", [*rows, *more], falling)
    if little:
        each = " each" if len(little) > 1 else ""
        page.words("", f"under {share(small)}{each}: {', '.join(little)}", "dim")


def step_lines(page: Page, one: ProcessSummary, alone: bool, small: float = SMALL) -> None:
    """Write the time of a step, its spread, its rate, and what of it is what.

    alone: no other process trained, so that it need not be said which one this is.
    small: share below which a phase gets no bar.
    """
    step = one.step
    if step.median_ns is None:
        page.words("Step", f"{UNKNOWN}: {many(step.steps, 'step')} seen, none of them steady")
        return
    spread = f"{duration(step.p10_ns)} to {duration(step.p90_ns)} in 8 of 10 steps"
    rate = "" if step.samples_per_s is None else f", {digits(step.samples_per_s)} samples/s"
    which = "" if alone else f" on {trainer_name(one)}"
    page.words("Step", f"{duration(step.median_ns)} median{which}, {spread}", "bold")
    page.words("", f"{_counted(step)}; {_ends(step)}", "dim")
    page.words("", f"{duration(step.mean_ns)} on average{rate}:", "dim")
    phases = {name: step.phases[name] for name in STEP_PHASES if name in step.phases}
    phase_lines(page, phases, small, ())


def trainer_name(one: ProcessSummary) -> str:
    """Return how a training process is called: by its rank, or by its number."""
    return f"process {one.pid}" if one.rank is None else f"rank {one.rank}"


def _counted(step: StepSummary) -> str:
    if step.warm_up_steps:
        return f"{many(step.steady_steps, 'steady step')} after {step.warm_up_steps:,} of warm-up"
    return f"{many(step.steady_steps, 'step')}, no warm-up seen"


def _ends(step: StepSummary) -> str:
    if step.rule == "optimizer" and step.ticks_per_step > 1.0:
        ticks = step.ticks_per_step
        number = f"{ticks:.0f}" if ticks == round(ticks) else f"{ticks:.3g} (mean)"
        return f"a step is one cycle of optimizers, {number} optimizer steps"
    return ENDS.get(step.rule, f"a step ends by rule {step.rule}")


def device_lines(page: Page, step: StepSummary) -> None:
    """Write what the device did in a step, by its own clock."""
    if step.device:
        parts = [
            f"{NAMES.get(name, name)} {duration(part.ns)}" for name, part in step.device.items()
        ]
        page.words("Device", f"of a step, by its own clock: {', '.join(parts)}")


def loader_lines(page: Page, loader: LoaderSummary, count: int = 1) -> None:
    """Write one loader: what it is, and what the time of preparing a batch is.

    count: how many like it the same line made.
    """
    role = "" if loader.role in ("training", "unknown") else f" ({loader.role})"
    batch = "" if loader.batch_size is None else f", batches of {loader.batch_size:,}"
    where = "" if loader.place is None else f", made at {loader.place.file}:{loader.place.line}"
    workers = many(loader.workers, "worker") if loader.workers else "no workers"
    alike = "" if count == 1 else f"; the busiest of {count} from there"
    page.words("Loader", f"{loader.dataset}{role}, {workers}{batch}{where}{alike}")
    if loader.batch_ns is None:
        page.words("", "no batch of it was recorded", "dim")
        return
    known = {name: loader.split[name].share for name in WORKER_SPLIT if name in loader.split}
    parts = sorted(
        ((value, name) for name, value in known.items() if value), key=lambda pair: -pair[0]
    )
    bound = {"blocked": "at most "} if loader.upper_bound else {}
    said = [f"{NAMES[name]} {bound.get(name, '')}{share(value)}" for value, name in parts]
    who = "a worker needs" if loader.workers else "the training thread needs"
    page.words("", f"{who} {duration(loader.batch_ns)} for a batch: {', '.join(said)}")


def machine_lines(page: Page, machine: MachineSummary, gpus: int = 8) -> None:
    """Write how busy cores, memory, disks, network and the first GPUs were while steps ran."""
    parts = [*_cores(machine), *_memory(machine)]
    if parts:
        page.words("Machine", ", ".join(parts))
    for at, gpu in enumerate(machine.gpus[:gpus]):
        page.words("" if at else "GPU", _gpu(gpu))
    if len(machine.gpus) > gpus:
        page.words("", f"and {many(len(machine.gpus) - gpus, 'more GPU')}", "dim")


def _cores(machine: MachineSummary) -> list[str]:
    if machine.cpu_share is None:
        return []
    allowed, visible = machine.cores_allowed, machine.cores_visible
    which = "cores"
    if allowed is not None:
        which = f"{allowed:.3g} core{'' if allowed == 1 else 's'}"
        if visible is not None and visible > allowed:
            which = f"{allowed:.3g} of {many(visible, 'core')} allowed:"
    busiest = machine.busiest_core_share
    of_one = "" if busiest is None else f" (the busiest {share(busiest)})"
    others = machine.others_cpu_share
    theirs = "" if others is None or others < SMALL else f", {share(others)} by other programs"
    return [f"{which} {share(machine.cpu_share)} busy{of_one}{theirs}"]


def _memory(machine: MachineSummary) -> list[str]:
    parts = []
    if machine.tree_rss_bytes is not None:
        parts.append(f"memory up to {size(machine.tree_rss_bytes)}")
    for name, rate in (
        ("disk read", machine.disk_read_bytes_per_s),
        ("disk write", machine.disk_write_bytes_per_s),
        ("network", machine.net_bytes_per_s),
        ("swapping in", machine.swap_in_bytes_per_s),
    ):
        if rate:
            parts.append(f"{name} {speed(rate)}")
    for name, word in (("io_some", "storage"), ("memory_some", "memory")):
        stalled = machine.pressure.get(name)
        if stalled is not None and stalled >= SMALL:
            parts.append(f"some task stalled on {word} in {share(stalled)} of the time")
    if machine.throttled_share:
        parts.append(f"held back by its CPU quota in {share(machine.throttled_share)} of periods")
    return parts


def _gpu(gpu: dict[str, object]) -> str:
    parts = [f"{gpu['index']} {gpu.get('name') or 'of unknown model'}"]
    busy = gpu.get("busy_share")
    used, total = gpu.get("memory_used_bytes"), gpu.get("memory_total_bytes")
    power, clock = gpu.get("power_mw"), gpu.get("sm_clock_hz")
    if isinstance(busy, (int, float)):
        parts[0] += f": {share(busy)} busy"
    if isinstance(used, (int, float)):
        of = f" of {size(total)}" if isinstance(total, (int, float)) else ""
        parts.append(f"memory {size(used)}{of}")
    if isinstance(power, (int, float)):
        parts.append(f"{digits(power / 1000)} W")
    if isinstance(clock, (int, float)):
        parts.append(f"{digits(clock / 1e9)} GHz")
    reasons = gpu.get("throttled_by")
    if isinstance(reasons, (list, tuple)) and reasons:
        parts.append(f"held back by {', '.join(map(str, reasons))}")
    return ", ".join(parts)


def look_lines(page: Page, sentences: Sequence[str]) -> None:
    """Write what stands out."""
    for at, words in enumerate(sentences):
        page.words("Look at" if at == 0 else "", sentence(words), "", "▸ ")


def sentence(words: str) -> str:
    """Return words that begin with a capital and end with a full stop."""
    return f"{words[:1].upper()}{words[1:].rstrip('.')}."
