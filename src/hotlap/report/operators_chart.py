"""torch's operators in a step, by name: as bars coloured by phase, and as the rows of a table."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, NamedTuple

from hotlap.report.chart_style import COLOURS, OTHER, ROW, beside, label, layout
from hotlap.report.excerpt import cut
from hotlap.report.profile_chart import phase_said
from hotlap.report.units import duration
from hotlap.values.facts import Facts, Measured
from hotlap.values.trial import OperatorEntry

MOST: Final = 12
"""Operators that get a bar and a row of their own."""

LONGEST: Final = 28
"""Characters of a name beside its bar."""


class OperatorTime(NamedTuple):
    """An operator in a step. calls, ns: per step, ns its own time. share: of all operators' time.

    by_phase: its time in each phase. place: ``file:line`` of the line that costs most in it, None
    where no line is known; of a backward operator that line is one of the forward pass, if any.
    """

    name: str
    calls: float
    ns: float
    share: float
    by_phase: dict[str, float]
    dtypes: tuple[str, ...]
    place: str | None


def operator_times(facts: Facts) -> list[OperatorTime]:
    """Return the operators of a step, the longest first; empty where they were not profiled."""
    if not isinstance(facts.operators, Measured):
        return []
    groups: dict[str, list[OperatorEntry]] = defaultdict(list)
    for entry in facts.operators.value:
        groups[entry.name].append(entry)
    total = sum(entry.ns for entry in facts.operators.value)
    if not total:
        return []
    times = [_time(name, entries, total) for name, entries in groups.items()]
    return sorted(times, key=lambda time: -time.ns)


def _time(name: str, entries: list[OperatorEntry], total: float) -> OperatorTime:
    by_phase: dict[str, float] = defaultdict(float)
    by_place: dict[str, float] = defaultdict(float)
    for entry in entries:
        by_phase[entry.phase] += entry.ns
        place = entry.forward or entry.place
        if place is not None:
            by_place[f"{place.file}:{place.line}"] += entry.ns
    ns = sum(by_phase.values())
    return OperatorTime(
        name=name,
        calls=sum(entry.calls for entry in entries),
        ns=ns,
        share=ns / total,
        by_phase=dict(by_phase),
        dtypes=tuple(sorted({kind for entry in entries for kind in entry.dtypes})),
        place=max(by_place, key=lambda where: by_place[where]) if by_place else None,
    )


def operators_chart(facts: Facts) -> dict[str, Any] | None:
    """Return a bar for each of the longest operators, in the phases' colours; None without any."""
    times = operator_times(facts)[:MOST]
    if not times:
        return None
    unit, size = ("ms", 1e6) if times[0].ns >= 1e6 else ("µs", 1e3)
    called = [cut(time.name, LONGEST) for time in times]
    names = [
        f"{label(name)}<br><b>{duration(time.ns)}</b>"
        for name, time in zip(called, times, strict=True)
    ]
    phases = list(dict.fromkeys(phase for time in times for phase in time.by_phase))
    bars = [
        {
            "type": "bar",
            "orientation": "h",
            "name": phase_said(phase),
            # By number: names that were cut may be alike.
            "y": list(range(len(times))),
            "x": [time.by_phase.get(phase, 0.0) / size for time in times],
            "marker": {"color": COLOURS.get(phase, OTHER)},
            "hovertemplate": "%{fullData.name}: %{x:.3~g} " + unit + "<extra></extra>",
        }
        for phase in phases
    ]
    shape = layout(
        ROW * len(times) + 88,
        margin={**beside(called), "t": 40},
        barmode="stack",
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1, "yanchor": "bottom"},
        xaxis={"title": {"text": f"{unit} per step", "standoff": 8}, "rangemode": "tozero"},
        yaxis={
            "autorange": "reversed",
            "showgrid": False,
            "tickvals": list(range(len(times))),
            "ticktext": names,
        },
    )
    return {"data": bars, "layout": shape}
