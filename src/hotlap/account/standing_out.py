"""The one or two things in a run that are worth a look, as sentences.

Only what was seen is said: how large a part is, and what was measured beside it. A cause is named
by experiment alone, and one run is none.

Four thresholds:

* a part is worth a look from a tenth of the step (or of the run). Were it to vanish entirely, the
  step would be 11 % faster; what a smaller part could give is lost in the noise of most machines;
* steps vary when one in ten takes twice the median: then the median alone misleads;
* preparing batches is named as what the loop waits for when it can be half of the wait;
* below ``warm_up.FEWEST`` steady steps nothing is said: shares of so few are chance.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hotlap.stats.warm_up import FEWEST
from hotlap.values.phase import CARVED_PHASES
from hotlap.values.summary import (
    LoaderSummary,
    MachineSummary,
    Part,
    ProcessSummary,
    TouchSummary,
)

WORTH_A_LOOK: Final = 0.10
VARIES: Final = 2.0
EXPLAINS: Final = 0.5
MOST: Final = 2

PARTS: Final = {
    "blocked": "blocked (storage, locks or sleep)",
    "cpu": "on the CPU (decoding, transforming)",
    "runqueue": "waiting for a free core",
    "collate": "collating samples into a batch",
    "ipc": "handing the batch over to the training process",
}

RUN_PARTS: Final = {
    "evaluation": "evaluation",
    "checkpoint": "writing checkpoints",
    "epoch_edge": "the edges of epochs (starting and stopping the loader)",
    "compile": "compiling the model",
}


def standing_out(
    trainers: Sequence[ProcessSummary], machine: MachineSummary, phases: dict[str, Part]
) -> tuple[str, ...]:
    """Return at most two sentences, the largest part first; or one that says nothing stands out.

    Args:
        trainers: the training processes, lowest rank first; empty gives no sentence.
        machine: the machine while they stepped.
        phases: run phases of the whole run.
    """
    if not trainers or not trainers[0].step.steps:
        return ()
    first = trainers[0].step
    if first.steady_steps < FEWEST:
        return (
            f"too few steps to judge: {first.steady_steps} in steady state, "
            f"{FEWEST} are the least that say something",
        )
    found = [
        *_in_the_run(phases),
        *_in_the_step(trainers, machine, phases["steps"].share or 1.0),
        *_machine(machine),
    ]
    found.sort(key=lambda pair: -pair[0])
    return tuple(words for _, words in found[:MOST]) or (_nothing(trainers[0]),)


def _in_the_run(phases: dict[str, Part]) -> Iterator[tuple[float, str]]:
    for name in CARVED_PHASES:
        share = phases[name].share
        if share is not None and share >= WORTH_A_LOOK:
            yield share, f"{RUN_PARTS[name]} takes {_percent(share)} of the run's wall time"


def _in_the_step(
    trainers: Sequence[ProcessSummary], machine: MachineSummary, steps: float
) -> Iterator[tuple[float, str]]:
    """Yield what stands out in the step, with its share of the run for the order."""
    waiting = max(trainers, key=lambda one: one.step.phases["data_wait"].share or 0.0)
    share = waiting.step.phases["data_wait"].share or 0.0
    if share >= WORTH_A_LOOK:
        yield share * steps, _data_wait(waiting, trainers, machine, share)
    first = trainers[0]
    for name, words in (
        ("transfer", "moving data to the device takes"),
        ("communication", "waiting for other processes takes"),
        ("logging", "logging takes"),
        ("other", "host code outside of model, loss and optimizer takes"),
    ):
        share = first.step.phases[name].share or 0.0
        if share >= WORTH_A_LOOK:
            where = _lines(first, name)
            yield share * steps, f"{words} {_percent(share)} of the step{where}"
    idle = _without_core(first)
    if idle is not None and idle >= WORTH_A_LOOK:
        yield idle * steps, _no_core(idle, machine)
    spread = _spread(first)
    if spread is not None:
        yield 0.0, spread


def _data_wait(
    one: ProcessSummary, trainers: Sequence[ProcessSummary], machine: MachineSummary, share: float
) -> str:
    loader = training_loader(one)
    words = f"the loop waits for data in {_percent(share)} of the step"
    waits = [other.step.phases["data_wait"].share for other in trainers]
    least = min(wait for wait in waits if wait is not None)
    who = f"process {one.pid}" if one.rank is None else f"rank {one.rank}"
    if share - least >= WORTH_A_LOOK:
        words = f"{who} waits for data in {_percent(share)} of the step"
        words += f" (the one that waits least: {_percent(least)})"
    elif len(trainers) > 1:
        words = f"every process waits for data, {who} in {_percent(share)} of the step"
    if loader is not None:
        explained = _explained(one, loader)
        if explained is not None and explained < EXPLAINS:
            words += f"; {_around(one, loader, explained)}"
        else:
            words += f"; {_preparing(loader)}"
    if machine.cpu_share is not None:
        words += f"; the cores allowed are {_percent(machine.cpu_share)} busy{_by_others(machine)}"
    return words


def training_loader(one: ProcessSummary) -> LoaderSummary | None:
    """Return the loader that gave most batches to training; None when there is none."""
    loaders = [loader for loader in one.loaders if loader.batches]
    training = [loader for loader in loaders if loader.role == "training"]
    return max(training or loaders, key=lambda loader: loader.batches, default=None)


def _explained(one: ProcessSummary, loader: LoaderSummary) -> float | None:
    """Return the largest share of the wait that preparing batches can be; None if not known.

    Workers that are all busy give a batch each ``batch_ns / workers``: the loop never waits for
    them longer than that, apart from its own time.
    """
    wait = one.step.phases["data_wait"].ns
    if not wait or not loader.batch_ns or not one.step.steps:
        return None
    batches = max(1.0, loader.batches / one.step.steps)
    return loader.batch_ns * batches / max(1, loader.workers) / wait


def _around(one: ProcessSummary, loader: LoaderSummary, explained: float) -> str:
    """Say that most of the wait is not the preparation of batches, and what it may be."""
    words = (
        f"making the batches explains at most {_percent(explained)} of that wait: the rest goes "
        "by around it, in the training process"
    )
    if not loader.workers:
        return f"{words} (the sampler, code around the loader)"
    wait = one.step.phases["data_wait"].ns or 1
    unpacked = (loader.unpack_ns or 0) / one.step.steps / wait
    if unpacked >= EXPLAINS:
        return f"{words}, {_percent(unpacked)} of it rebuilding what a worker has handed over"
    return f"{words} (the sampler, rebuilding batches) or starting workers"


def _preparing(loader: LoaderSummary) -> str:
    known = {name: part.share for name, part in loader.split.items() if part.share is not None}
    if not loader.workers:
        who = "the loader has no workers, and the training thread itself spends"
    elif loader.workers == 1:
        who = "the loader's one worker spends"
    else:
        who = f"the loader's {loader.workers} workers spend"
    if not known:
        return f"{who} a time on each batch that is not known"
    largest = max(known, key=lambda name: known[name])
    what = PARTS[largest]
    if largest == "blocked" and loader.upper_bound:
        what = "blocked or waiting for a free core"
    return f"{who} {_percent(known[largest])} of a batch's time {what}"


def _lines(one: ProcessSummary, phase: str) -> str:
    """Name the user's line whose calls take most of a phase, when one is worth it."""
    families = {
        "transfer": ("transfer",),
        "communication": ("communication",),
        "logging": ("logging",),
        "other": ("sync",),
    }[phase]
    touches = [t for t in one.touches if t.family in families and t.place is not None]
    largest: TouchSummary | None = max(touches, key=lambda t: t.share or 0.0, default=None)
    if largest is None or largest.place is None or (largest.share or 0.0) < WORTH_A_LOOK / 2:
        return ""
    where = f"{largest.place.file}:{largest.place.line}"
    often = "" if largest.per_step is None else f", {_times(largest.per_step)} a step"
    return f"; {largest.kind} at {where} is {_percent(largest.share or 0.0)} of the step{often}"


def _times(number: float) -> str:
    return "once" if round(number, 2) == 1.0 else f"{number:.3g} times"


def _without_core(one: ProcessSummary) -> float | None:
    """Return the share of a step in which the training thread neither computed nor waited.

    Only where it computes itself and alone: with a GPU or with other ranks it waits for those.
    """
    if one.step.cpu_share is None or (one.world_size or 1) > 1:
        return None
    if one.device is not None and not one.device.startswith("cpu"):
        return None
    waits = ("data_wait", "communication", "logging")
    waiting = sum(one.step.phases[name].share or 0.0 for name in waits)
    return 1.0 - one.step.cpu_share - waiting


def _no_core(idle: float, machine: MachineSummary) -> str:
    words = (
        f"in {_percent(idle)} of the step the training thread neither ran on a core nor waited "
        "for data: it was blocked, or had no core to run on"
    )
    if machine.cpu_share is not None:
        words += f" (the cores allowed are {_percent(machine.cpu_share)} busy{_by_others(machine)})"
    return words


def _by_others(machine: MachineSummary) -> str:
    """Say what other programs took of the cores, where it is worth a look."""
    others = machine.others_cpu_share
    if others is None or others < WORTH_A_LOOK:
        return ""
    return f", {_percent(others)} by other programs"


def _spread(one: ProcessSummary) -> str | None:
    median, high = one.step.median_ns, one.step.p90_ns
    if not median or high is None or high < VARIES * median:
        return None
    return f"steps vary: one in ten takes {high / median:.2g} times the median or longer"


def _machine(machine: MachineSummary) -> Iterator[tuple[float, str]]:
    share = machine.throttled_share
    if share is not None and share >= WORTH_A_LOOK:
        yield (
            share,
            f"the container's CPU quota held the processes back in {_percent(share)} of its "
            "periods",
        )


def _nothing(one: ProcessSummary) -> str:
    shares = {name: part.share or 0.0 for name, part in one.step.phases.items()}
    work = [name for name in ("forward", "backward", "optimizer") if shares[name] > 0.0]
    if not work:
        return "nothing stands out"
    named = work[0] if len(work) == 1 else f"{', '.join(work[:-1])} and {work[-1]}"
    return (
        f"nothing stands out: {_percent(sum(map(shares.__getitem__, work)))} of the step is {named}"
    )


def _percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.01 else "under 1 %"
