"""The charts of a tuning's page: before and after, what each knob brought, all runs in order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hotlap.report.chart_style import COLOURS, MAIN, MARK, OTHER, ROW, beside, label, layout
from hotlap.report.charts import in_html
from hotlap.report.sections import NAMES
from hotlap.report.tuning_page import typical
from hotlap.report.units import duration
from hotlap.values.arm import ArmRun
from hotlap.values.tuning import Tried, Tuning

_GOOD: Final = "#3f9f57"
_MOST: Final = 12
"""Knobs that are drawn, those that were kept first."""


def tuning_charts(tuning: Tuning) -> dict[str, str]:
    """Return the charts that a tuning allows, by name, as JSON that may stand in HTML.

    Names: ``steps``, ``knobs``, ``runs``. Raises ImportError when plotly is not installed.
    """
    made = {"steps": _steps(tuning), "knobs": _knobs(tuning), "runs": _runs(tuning)}
    return {name: in_html(chart) for name, chart in made.items() if chart is not None}


def _steps(tuning: Tuning) -> dict[str, Any] | None:
    """Return two stacked bars, a mean step as it stands and under the plan."""
    before = typical(tuning, bare=True)
    after = typical(tuning, bare=False) if tuning.plan is not None else None
    runs = [
        (name, run)
        for name, run in (("as it stands", before), ("under the plan", after))
        if run is not None and run.accounts and run.steps
    ]
    if not runs:
        return None
    names = [f"{name}<br><b>{duration(run.step_ns)}</b>" for name, run in runs]
    parts = [name for name in runs[0][1].accounts if any(_of(run, name) > 0 for _, run in runs)]
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": NAMES.get(part, part),
            "y": names,
            "x": [_of(run, part) / 1e6 for _, run in runs],
            "marker": {"color": COLOURS.get(part, OTHER)},
            "hoverinfo": "name+x",
        }
        for part in parts
    ]
    shape = layout(
        ROW * len(runs) + 130,
        margin=beside(["under the plan"]),
        barmode="stack",
        showlegend=True,
        legend={"orientation": "h", "y": -0.6},
        xaxis={"title": {"text": "ms per step", "standoff": 8}},
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    return {"data": bars, "layout": shape}


def _of(run: ArmRun, part: str) -> float:
    return run.accounts.get(part, 0) / run.steps


def _knobs(tuning: Tuning) -> dict[str, Any] | None:
    """Return what each knob that was run brought, with its interval, beside what was predicted."""
    run = [one for one in tuning.tried if one.measured is not None]
    run.sort(key=lambda one: ("kept", "offered", "rejected").index(one.word))
    if not run:
        return None
    shown = run[:_MOST]
    called = [f"{one.knob} = {one.value}" for one in shown]
    names = [f"{label(name)}<br>{one.word}" for name, one in zip(called, shown, strict=True)]
    colours = {"kept": _GOOD, "offered": MAIN, "rejected": OTHER}
    measured = {
        "type": "scatter",
        "mode": "markers",
        "name": "measured",
        "y": names,
        "x": [_mid(one) for one in shown],
        "marker": {"size": 11, "color": [colours[one.word] for one in shown]},
        "error_x": _ends(shown),
        "hoverinfo": "x+y",
    }
    told = [
        (name, one)
        for name, one in zip(names, shown, strict=True)
        if one.predicted.low is not None and one.predicted.high is not None
    ]
    lines = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "predicted",
            "y": [name, name],
            "x": [one.predicted.low, one.predicted.high],
            "line": {"color": MARK, "width": 10},
            "opacity": 0.35,
            "hoverinfo": "name+x",
        }
        for name, one in told
    ]
    shape = layout(
        ROW * len(shown) + 60,
        margin=beside([*called, "x" * 12]),
        xaxis={"title": {"text": "times as fast", "standoff": 8}},
        yaxis={"autorange": "reversed", "categoryorder": "array", "categoryarray": names},
        shapes=[_at_one()],
    )
    return {"data": [*lines, measured], "layout": shape}


def _mid(one: Tried) -> float:
    return one.measured.mid if one.measured is not None else 1.0


def _ends(shown: list[Tried]) -> Mapping[str, Any]:
    intervals = [one.measured for one in shown if one.measured is not None]
    return {
        "type": "data",
        "symmetric": False,
        "color": OTHER,
        "array": [one.high - one.mid for one in intervals],
        "arrayminus": [one.mid - one.low for one in intervals],
    }


def _at_one() -> dict[str, Any]:
    line = {"color": OTHER, "dash": "dot"}
    return {"type": "line", "x0": 1, "x1": 1, "yref": "paper", "y0": 0, "y1": 1, "line": line}


def _runs(tuning: Tuning) -> dict[str, Any] | None:
    """Return all runs in order, so that a machine that changed its speed is seen."""
    sound = [one for one in tuning.runs if one.failed is None and one.step_ns]
    if not sound:
        return None
    plan = tuning.plan.settings if tuning.plan is not None else None
    groups = {"as it stands": MAIN, "under the whole plan": _GOOD, "others": OTHER}
    data = []
    for name, colour in groups.items():
        inside = [one for one in sound if _group(one, plan) == name]
        data.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": [one.nth + 1 for one in inside],
                "y": [(one.step_ns or 0) / 1e6 for one in inside],
                "text": [label(one.arm.says) for one in inside],
                "marker": {"color": colour, "size": 8},
                "hoverinfo": "text+y",
            }
        )
    shape = layout(
        320,
        showlegend=True,
        legend={"orientation": "h", "y": -0.3},
        xaxis={"title": {"text": "run", "standoff": 8}},
        yaxis={"title": {"text": "ms per step", "standoff": 8}, "rangemode": "tozero"},
    )
    return {"data": data, "layout": shape}


def _group(run: ArmRun, plan: Mapping[str, Any] | None) -> str:
    if not run.arm.settings:
        return "as it stands"
    return "under the whole plan" if dict(run.arm.settings) == plan else "others"
