"""Facts made by hand: small runs whose numbers are easy to check with a pencil."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hotlap.values.facts import Facts, Measured, Setting, SourceLine
from hotlap.values.phase import RUN_PHASES, STEP_PHASES
from hotlap.values.record import Place
from hotlap.values.summary import (
    LoaderSummary,
    MachineSummary,
    Part,
    ProcessSummary,
    RunSummary,
    StepSummary,
)
from hotlap.values.trial import OperatorEntry, ProfileEntry

SECOND = 1_000_000_000
STEPS = 1_000
WALL_NS = 100 * SECOND


def place(line: int, function: str = "train", file: str = "train.py") -> Place:
    """Return a place of the user's."""
    return Place(file, line, function)


def entry(
    phase: str,
    line: int,
    share: float,
    function: str = "train",
    *,
    state: str = "working",
    **more: Any,
) -> ProfileEntry:
    """Return what a line cost: ``share`` of the run's wall time. more: other fields."""
    ns = int(share * WALL_NS)
    parts = {"working": 0, "blocked": 0, "runqueue": 0, state: ns}
    given: dict[str, Any] = {
        "role": "trainer",
        "expression": None,
        "callers": (),
        "leaf": f"__main__.{function}",
    }
    return ProfileEntry(
        phase=phase,
        place=place(line, function),
        samples=max(1, int(share * 5_000)),
        ns=ns,
        working_ns=parts["working"],
        blocked_ns=parts["blocked"],
        runqueue_ns=parts["runqueue"],
        **(given | more),
    )


def loader(
    workers: int = 0,
    split: Mapping[str, float] | None = None,
    batch_size: int | None = 32,
    line: int = 5,
) -> LoaderSummary:
    """Return a training loader made in line ``line``."""
    shares = {"blocked": 0.0, "cpu": 1.0, "runqueue": 0.0, "collate": 0.0, "ipc": 0.0}
    shares.update(split or {})
    return LoaderSummary(
        ordinal=0,
        dataset="Photos",
        place=place(line, "main"),
        role="training",
        batch_size=batch_size,
        workers=workers,
        batches=STEPS,
        batch_ns=10_000_000,
        slowest_ns=20_000_000,
        split={name: Part(None, share) for name, share in shares.items()},
        upper_bound=False,
        unpack_ns=None,
        asked_bytes=None,
        disk_bytes=None,
    )


def process(
    step: Mapping[str, float],
    loaders: tuple[LoaderSummary, ...] = (),
    rank: int | None = None,
    step_ns: int = 100_000_000,
) -> ProcessSummary:
    """Return a trainer whose step phases have these shares; the rest of the step is `other`."""
    shares = dict.fromkeys(STEP_PHASES, 0.0) | dict(step)
    shares["other"] += 1.0 - sum(shares.values())
    return ProcessSummary(
        pid=100 + (rank or 0),
        host="here",
        rank=rank,
        local_rank=rank,
        world_size=None,
        torch="2.13.0",
        device="cpu",
        phases={},
        step=StepSummary(
            rule="optimizer",
            steps=STEPS,
            steady_steps=STEPS - 10,
            warm_up_steps=10,
            ticks_per_step=1.0,
            median_ns=step_ns,
            p10_ns=step_ns,
            p90_ns=step_ns,
            phases={name: Part(int(x * step_ns), x) for name, x in shares.items()},
            samples_per_s=320.0,
            cpu_share=1.0,
            mean_ns=step_ns,
        ),
        loaders=loaders,
        touches=(),
    )


def run(
    step: Mapping[str, float],
    *,
    phases: Mapping[str, float] | None = None,
    loaders: tuple[LoaderSummary, ...] = (),
    trainers: tuple[ProcessSummary, ...] | None = None,
    cores: float | None = 2.0,
) -> RunSummary:
    """Return a run of 100 s; what ``phases`` leaves over is `steps`."""
    shares = dict.fromkeys(RUN_PHASES, 0.0) | dict(phases or {})
    shares["steps"] = 1.0 - sum(shares.values())
    return RunSummary(
        id="made",
        command=("python", "train.py"),
        hotlap_version="0",
        started="2026-01-01T00:00:00+00:00",
        finished=True,
        exit_code=0,
        wall_ns=WALL_NS,
        phases={name: Part(int(x * WALL_NS), x) for name, x in shares.items()},
        horizon_steps=STEPS,
        horizon_source="observed",
        trainers=trainers if trainers is not None else (process(step, loaders),),
        machine=MachineSummary(cores_allowed=cores),
        standing_out=(),
        not_measured=(),
        faults=(),
        absence=None,
    )


def facts(
    summary: RunSummary,
    *profile: ProfileEntry,
    operators: tuple[OperatorEntry, ...] = (),
    source: Mapping[int, SourceLine] | None = None,
    **more: Any,
) -> Facts:
    """Return facts of a whole run with this profile."""
    given: dict[str, Any] = {
        "run": summary,
        "whole_run": True,
        "profile": Measured(profile, "made by hand"),
        "source": {f"train.py:{line}": one for line, one in (source or {}).items()},
        "noise": Measured(0.02, "made by hand"),
    }
    if operators:
        given["operators"] = Measured(operators, "made by hand")
    return Facts(**(given | more))


def line(
    number: int, text: str, loops: tuple[int, ...] = (), function: str = "train"
) -> SourceLine:
    """Return a source line."""
    return SourceLine(place(number, function), text, loops)


def operator(
    number: int,
    name: str,
    calls: float,
    ns: float,
    phase: str = "forward",
    dtype: str = "float",
    forward: int | None = None,
) -> OperatorEntry:
    """Return an operator below line ``number``, per step. forward: of a backward operator, the line
    of the forward pass."""
    entry = OperatorEntry(place(number), phase, name, calls, ns, 1, (dtype,))
    return entry if forward is None else replace(entry, forward=place(forward))


HEALTHY = (
    entry("data_wait", 20, 0.01, "__getitem__"),
    entry("forward", 30, 0.30, "forward", leaf="torch.nn.modules.conv.Conv2d._conv_forward"),
    entry("backward", 12, 0.50, leaf="torch.autograd.graph._engine_run_backward"),
    entry("optimizer", 13, 0.10, leaf="torch.optim.adam.Adam.step"),
    entry("other", 14, 0.02, expression="F.cross_entropy(out, y)"),
)
"""A profile of a training that its model bounds."""
HEALTHY_STEP = {"data_wait": 0.01, "forward": 0.32, "backward": 0.53, "optimizer": 0.11}


def retained(backwards: float, backward: float = 0.7, value: bool = True) -> Facts:
    """Return facts of a training that keeps graphs for several backward passes a step."""
    return facts(
        run({"forward": 0.12, "backward": backward, "other": 0.05}),
        entry("forward", 30, 0.1, "forward"),
        entry("backward", 16, backward, expression="loss.backward(retain_graph=True)"),
        settings=(Setting("retain_graph", value, place(16)),),
        counts={"backwards_per_step": backwards},
    )
