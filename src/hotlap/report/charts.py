"""The charts of a page as figures of plotly: a waterfall, ceilings, a curve, a course, a profile.

plotly checks them; the page draws them. Text of the user's is escaped for plotly's own markup.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hotlap.report.chart_style import COLOURS, MAIN, MARK, OTHER, ROW, beside, label, layout
from hotlap.report.limits import knee, limits
from hotlap.report.operators_chart import operators_chart
from hotlap.report.profile_chart import profile_chart
from hotlap.report.sections import NAMES
from hotlap.report.units import digits, duration, share
from hotlap.stats.quantiles import median, quantile
from hotlap.values.facts import Facts
from hotlap.values.shares import training_rate
from hotlap.values.summary import Part

COURSE_PARTS: Final = 40
"""Stretches of the run whose medians are drawn."""

FAR: Final = 4.0
"""Steps that take so many times the ninth decile are left outside of the chart, and counted."""


def charts(facts: Facts) -> dict[str, str]:
    """Return the charts that the facts allow, by name, each as JSON that may stand in HTML.

    Names: ``step``, ``run``, ``ceilings``, ``workers``, ``course``, ``trainer``, ``worker``,
    ``operators``.
    Raises ImportError when plotly is not installed.
    """
    made = {
        "step": _step(facts),
        "run": _waterfall(facts.run.phases),
        "ceilings": _ceilings(facts),
        "workers": _workers(facts),
        "course": _course(facts.step_series),
        "trainer": profile_chart(facts, "trainer"),
        "worker": profile_chart(facts, "worker"),
        "operators": operators_chart(facts),
    }
    return {name: in_html(chart) for name, chart in made.items() if chart is not None}


def in_html(chart: Mapping[str, Any]) -> str:
    """Return a figure, checked by plotly, as JSON without a character that HTML would read."""
    from plotly.graph_objects import Figure
    from plotly.io import to_json

    text = str(to_json(Figure(chart), validate=True, engine="json"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _step(facts: Facts) -> dict[str, Any] | None:
    trainers = facts.run.trainers
    return _waterfall(trainers[0].step.phases) if trainers else None


def _waterfall(phases: Mapping[str, Part]) -> dict[str, Any] | None:
    """Return bars of which each begins where the one above it ended; None without parts."""
    parts = [(name, part.ns, part.share) for name, part in phases.items() if part.ns]
    if not parts:
        return None
    names, called, begins, at = [], [], [], 0
    for name, ns, part in parts:
        said = f"{share(part)}, {duration(ns)}" if part is not None else duration(ns)
        called.append(NAMES.get(name, name))
        names.append(f"{label(called[-1])}<br><b>{said}</b>")
        begins.append(at)
        at += ns or 0
    unit, size = _unit(at)
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": [(ns or 0) / size for _, ns, _ in parts],
        "base": [begin / size for begin in begins],
        "marker": {"color": [COLOURS.get(name, OTHER) for name, _, _ in parts]},
        "hoverinfo": "y",
    }
    shape = layout(
        ROW * len(parts) + 56,
        margin=beside([*called, "99.9 %, 999 ms"]),
        xaxis={"title": {"text": unit, "standoff": 8}, "range": [0, at / size]},
        yaxis={"autorange": "reversed", "showgrid": False},
    )
    return {"data": [bars], "layout": shape}


def _unit(ns: float) -> tuple[str, float]:
    """Return the unit in which a time reads best, and its length in nanoseconds."""
    for unit, size in (("s", 1e9), ("ms", 1e6)):
        if ns >= size:
            return unit, size
    return "µs", 1e3


def _ceilings(facts: Facts) -> dict[str, Any] | None:
    """Return the rates of the parts alone beside the present one; None without any ceiling."""
    known = [limit for limit in limits(facts) if limit.rate is not None]
    if not known:
        return None
    now = training_rate(facts)
    names, rates = [], []
    more: list[float | None] = []
    less: list[float | None] = []
    if now is not None:
        names, rates, more, less = [f"now<br><b>{digits(now)}</b>"], [now], [None], [None]
    for limit in known:
        rate = limit.rate or 0.0
        names.append(f"{limit.name}<br><b>{digits(rate)}</b>")
        rates.append(rate)
        more.append(None if limit.high is None else limit.high - rate)
        less.append(None if limit.low is None else rate - limit.low)
    bars = {
        "type": "bar",
        "orientation": "h",
        "y": names,
        "x": rates,
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": more,
            "arrayminus": less,
            "color": OTHER,
        },
        "marker": {"color": [OTHER if now is not None and not at else MAIN for at in _at(rates)]},
        "hoverinfo": "y",
    }
    shape = layout(
        ROW * len(rates) + 56,
        margin=beside([limit.name for limit in known]),
        xaxis={
            "title": {"text": "samples per second", "standoff": 8},
            "rangemode": "tozero",
            "tickformat": ",",
            "nticks": 6,
        },
        yaxis={"autorange": "reversed", "showgrid": False},
        shapes=[] if now is None else [_line("x", now)],
    )
    return {"data": [bars], "layout": shape}


def _at(values: Sequence[object]) -> range:
    return range(len(values))


def _line(axis: str, value: float) -> dict[str, Any]:
    """Return a dashed line across the chart at a value of one axis."""
    other = "y" if axis == "x" else "x"
    return {
        "type": "line",
        f"{axis}0": value,
        f"{axis}1": value,
        f"{other}0": 0,
        f"{other}1": 1,
        f"{other}ref": "paper",
        "line": {"color": OTHER, "dash": "dot", "width": 1.5},
    }


def _workers(facts: Facts) -> dict[str, Any] | None:
    """Return the loader's rate over its workers with intervals; None with fewer than two points."""
    curve = sorted(facts.curve, key=lambda point: point.workers)
    if len(curve) < 2:
        return None
    turn = knee(curve)
    points = {
        "type": "scatter",
        "mode": "lines+markers",
        "x": [point.workers for point in curve],
        "y": [point.per_s for point in curve],
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [point.high - point.per_s for point in curve],
            "arrayminus": [point.per_s - point.low for point in curve],
        },
        "line": {"color": MAIN},
        "marker": {
            "size": [13 if point.workers == turn else 8 for point in curve],
            "opacity": 1.0,
            "color": [MARK if point.workers == turn else MAIN for point in curve],
        },
        "hovertemplate": "%{x} workers: %{y:,.4s} samples/s<extra></extra>",
    }
    shape = layout(
        300,
        xaxis={
            "title": {"text": "workers", "standoff": 8},
            "tickvals": [point.workers for point in curve],
            "showgrid": False,
        },
        yaxis={
            "title": {"text": "samples per second"},
            "rangemode": "tozero",
            "tickformat": ",",
        },
    )
    return {"data": [points], "layout": shape}


def _course(series: Sequence[int]) -> dict[str, Any] | None:
    """Return the time of each step over the run, and the medians of equal stretches."""
    if len(series) < 8:
        return None
    unit, size = _unit(median(series) or 1.0)
    times = [ns / size for ns in series]
    length = max(1, len(times) // COURSE_PARTS)
    starts = range(0, len(times), length)
    middles = [median(times[start : start + length]) for start in starts]
    where = [min(1.0, (start + length / 2) / len(times)) for start in starts]
    steps = {
        "type": "scatter",
        "mode": "markers",
        "x": [at / len(times) for at in _at(times)],
        "y": times,
        "marker": {"size": 3, "color": OTHER, "opacity": 0.6},
        "hoverinfo": "y",
    }
    course = {
        "type": "scatter",
        "mode": "lines",
        "x": where,
        "y": middles,
        "line": {"color": MARK, "width": 2.5},
        "hoverinfo": "y",
    }
    shape = layout(
        280,
        xaxis={
            "title": {"text": "part of the watched steps", "standoff": 8},
            "tickformat": ".0%",
            "tickvals": [0.0, 0.25, 0.5, 0.75, 1.0],
            "range": [0, 1],
            "showgrid": False,
        },
        yaxis={"title": {"text": f"step in {unit}"}, "range": [0, top_of(series) / size]},
    )
    return {"data": [steps, course], "layout": shape}


def top_of(series: Sequence[int]) -> float:
    """Return the step time up to which the chart of the course reaches, in nanoseconds."""
    most = float(max(series))
    usual = FAR * (quantile(series, 0.9) or most)
    return 1.05 * min(most, usual)
