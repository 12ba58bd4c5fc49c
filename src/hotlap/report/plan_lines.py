"""What a report says of the plan that a run applied."""

from __future__ import annotations

from hotlap.report.page import Page
from hotlap.report.units import duration
from hotlap.values.summary import PlanSummary, RunSummary


def plan_lines(page: Page, summary: RunSummary) -> None:
    """Write whether each knob acted, what was left out, and whether the steps are as fast as then.

    No gain is stated: a run under a plan has nothing beside it to be compared with.
    """
    plan = summary.plan
    if plan is None:
        return
    lines = list(_said(plan, summary))
    for at, (said, style) in enumerate(lines):
        page.words("" if at else "Plan", said, style)
    page.blank()


def _said(plan: PlanSummary, summary: RunSummary) -> list[tuple[str, str]]:
    found = []
    if plan.acted:
        found.append((f"{', '.join(plan.acted)}: acted ({plan.file})", ""))
    found += [(f"{knob} did nothing: {proof}", "yellow") for knob, proof in plan.idle.items()]
    if plan.unheard:
        found.append((f"nothing is known yet of {', '.join(plan.unheard)}", ""))
    found += [(f"{knob} was left out: {why}", "yellow") for knob, why in plan.left_out.items()]
    if plan.differences:
        said = "; ".join(plan.differences)
        found.append((f"the plan was measured elsewhere ({said}): tune again", "yellow"))
    if plan.step is not None and plan.band_ns is not None:
        step = summary.trainers[0].step.mean_ns
        band = f"{duration(plan.band_ns[0])} to {duration(plan.band_ns[1])}"
        if plan.step == "inside":
            found.append((f"a mean step of {duration(step)} is what it was tuned to ({band})", ""))
        else:
            said = f"a mean step of {duration(step)} is {plan.step} what it was tuned to ({band})"
            found.append((f"{said}: tune again", "yellow"))
    return found
