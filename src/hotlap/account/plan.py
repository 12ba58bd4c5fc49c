"""What became of the plan that a run applied: did its knobs act, are its steps as fast as then?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hotlap.values.record import Process, Record
from hotlap.values.summary import PlanSummary, ProcessSummary


def plan_summary(
    record: Record, trainers: Sequence[Process], summaries: Sequence[ProcessSummary]
) -> PlanSummary | None:
    """Return what became of a run's plan; None where it had none.

    A knob acted where any training process (or its loaders' workers) says so.
    """
    plan = record.plan
    if not plan:
        return None
    proofs = [process.settings_proof for process in trainers if process.settings_proof]
    acted: dict[str, str] = {}
    idle: dict[str, str] = {}
    unheard = []
    for knob in plan.get("knobs", {}):
        said = [proof[knob] for proof in proofs if isinstance(proof.get(knob), dict)]
        if not said:
            unheard.append(knob)
            continue
        best = max(said, key=lambda one: bool(one.get("acted")))
        (acted if best.get("acted") else idle)[knob] = str(best.get("proof", ""))
    band = _band(plan.get("step_ns"))
    return PlanSummary(
        file=str(plan.get("file", "")),
        acted=acted,
        idle=idle,
        unheard=tuple(unheard),
        left_out={str(key): str(value) for key, value in plan.get("left_out", {}).items()},
        differences=tuple(str(one) for one in plan.get("differences", ())),
        step=_step(band, summaries),
        band_ns=band,
    )


def _band(raw: Any) -> tuple[int, int] | None:
    if isinstance(raw, (list, tuple)) and len(raw) == 2:
        return int(raw[0]), int(raw[1])
    return None


def _step(band: tuple[int, int] | None, summaries: Sequence[ProcessSummary]) -> str | None:
    step = summaries[0].step if summaries else None
    if band is None or step is None or step.mean_ns is None or not step.steady_steps:
        return None
    if step.mean_ns < band[0]:
        return "below"
    return "above" if step.mean_ns > band[1] else "inside"
