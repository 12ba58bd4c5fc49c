"""A summary as JSON, format 1.

Keys that ``diagnose`` shares (``run``, ``step``, ``workers``, ``machine``, ``not_measured``) mean
the same there. What takes an experiment (``verdict``, ``ceilings``, ``noise_floor``,
``findings``, ``trials``) is absent and not empty: an empty list of findings would say that
nothing is worth fixing, and one run cannot know that.

What was not measured is null, with its reason under ``not_measured``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from hotlap.report.chosen import shown_loaders
from hotlap.values.phase import RUN_PHASES, STEP_PHASES, WORKER_SPLIT
from hotlap.values.record import Place
from hotlap.values.summary import (
    LoaderSummary,
    Part,
    ProcessSummary,
    RunSummary,
    StepSummary,
    TouchSummary,
)

FORMAT: Final = 1

FAMILIES: Final = {
    "syncs": ("sync",),
    "housekeeping": ("logging", "checkpoint"),
    "moves": ("transfer", "communication"),
}
"""Groups of touches by family."""

NO_KNEE: Final = (
    "workers.knee",
    "a run has one number of workers, and where more of them stop helping takes an experiment",
)


def to_json(summary: RunSummary) -> dict[str, Any]:
    """Return the summary as an object that ``json.dumps`` takes.

    ``step`` and ``workers`` are those of the lowest rank; ``ranks`` has every training process.
    """
    first = summary.trainers[0] if summary.trainers else None
    return {
        "format": FORMAT,
        "report": "run",
        "hotlap_version": summary.hotlap_version,
        "id": summary.id,
        "command": list(summary.command),
        "started": summary.started,
        "finished": summary.finished,
        "exit_code": summary.exit_code,
        "absence": summary.absence,
        "run": {
            "wall_ns": summary.wall_ns,
            "phases": _parts(summary.phases, RUN_PHASES),
            "horizon": {"steps": summary.horizon_steps, "source": summary.horizon_source},
        },
        "step": _step(first.step if first else None),
        "workers": {"split": _main_split(first), "knee": None},
        "loaders": [_loader(loader) for loader in (first.loaders if first else ())],
        "touches": _touches(first.touches if first else ()),
        "ranks": [_rank(one) for one in summary.trainers],
        "machine": asdict(summary.machine),
        "plan": None if summary.plan is None else asdict(summary.plan),
        "standing_out": list(summary.standing_out),
        "not_measured": [
            {"what": what, "because": because} for what, because in (*summary.not_measured, NO_KNEE)
        ],
        "faults": list(summary.faults),
    }


def _parts(parts: dict[str, Part], names: Sequence[str]) -> dict[str, Any]:
    unknown = Part(None, None)
    return {name: asdict(parts.get(name, unknown)) for name in names}


def _step(step: StepSummary | None) -> dict[str, Any]:
    """Return a step's figures, each of them null when there is none."""
    return {
        "median_ns": step and step.median_ns,
        "mean_ns": step and step.mean_ns,
        "p10_ns": step and step.p10_ns,
        "p90_ns": step and step.p90_ns,
        "steps": step and step.steps,
        "steady_steps": step and step.steady_steps,
        "warm_up_steps": step and step.warm_up_steps,
        "rule": step and step.rule,
        "ticks_per_step": step and step.ticks_per_step,
        "samples_per_s": step and step.samples_per_s,
        "cpu_share": step and step.cpu_share,
        "phases": _parts(step.phases if step else {}, STEP_PHASES),
        "device": {name: asdict(part) for name, part in step.device.items()} if step else {},
    }


def _main_split(first: ProcessSummary | None) -> dict[str, float | None]:
    """Return the shares of a batch's time in the loader that gave most batches to training."""
    loaders = shown_loaders(first) if first else []
    split = loaders[0][0].split if loaders else {}
    return {name: split[name].share if name in split else None for name in WORKER_SPLIT}


def _loader(loader: LoaderSummary) -> dict[str, Any]:
    return {
        **asdict(loader),
        "place": _place(loader.place),
        "split": _parts(loader.split, WORKER_SPLIT),
    }


def _touches(touches: Sequence[TouchSummary]) -> dict[str, list[dict[str, Any]]]:
    return {
        group: [asdict(touch) for touch in touches if touch.family in families]
        for group, families in FAMILIES.items()
    }


def _rank(one: ProcessSummary) -> dict[str, Any]:
    return {
        "pid": one.pid,
        "host": one.host,
        "rank": one.rank,
        "local_rank": one.local_rank,
        "world_size": one.world_size,
        "torch": one.torch,
        "device": one.device,
        "phases": _parts(one.phases, RUN_PHASES),
        "step": _step(one.step),
        "loaders": [_loader(loader) for loader in one.loaders],
        "touches": _touches(one.touches),
    }


def _place(place: Place | None) -> dict[str, Any] | None:
    return None if place is None else asdict(place)
