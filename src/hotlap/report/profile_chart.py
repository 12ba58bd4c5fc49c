"""The profile by phase and line: as a map of boxes, and as the rows of a table."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, Final, NamedTuple

from hotlap.report.chart_style import COLOURS, OTHER, label, layout
from hotlap.report.readable import readable
from hotlap.report.sections import NAMES
from hotlap.values.facts import Facts, Measured
from hotlap.values.trial import ProfileEntry

MOST_LINES: Final = 12
"""Lines of one phase that get a box of their own."""

WORKER_PHASES: Final = {"fetch": "fetching samples", "idle": "nothing to do"}


class LineTime(NamedTuple):
    """Time at one line in one phase. place: ``file:line``, None where no frame was the user's.

    Shares are of the whole time of the role; the three states add up to ``share`` where the
    kernel tells them, else they are None.
    """

    phase: str
    place: str | None
    text: str
    ns: int
    share: float
    working: float | None
    blocked: float | None
    runqueue: float | None


def phase_said(phase: str) -> str:
    """Return how a phase of the profile is called."""
    return WORKER_PHASES.get(phase) or NAMES.get(phase, phase.replace("_", " "))


def line_times(facts: Facts, role: str) -> list[LineTime]:
    """Return the time of a role by phase and line, the longest first; empty without a profile."""
    entries = _entries(facts, role)
    total = sum(entry.ns for entry in entries)
    if not total:
        return []
    groups: dict[tuple[str, str | None], list[ProfileEntry]] = defaultdict(list)
    for entry in entries:
        where = None if entry.place is None else f"{entry.place.file}:{entry.place.line}"
        groups[entry.phase, where].append(entry)
    texts = {f"{one.place.file}:{one.place.line}": one.text for one in facts.source.values()}
    times = [
        _line_time(phase, where, texts.get(where or "", ""), group, total)
        for (phase, where), group in groups.items()
    ]
    return sorted(times, key=lambda time: -time.ns)


def _line_time(
    phase: str, where: str | None, text: str, group: list[ProfileEntry], total: int
) -> LineTime:
    working, blocked, runqueue = (
        _state_share([getattr(entry, f"{state}_ns") for entry in group], total)
        for state in ("working", "blocked", "runqueue")
    )
    ns = sum(entry.ns for entry in group)
    return LineTime(phase, where, text, ns, ns / total, working, blocked, runqueue)


def _state_share(times: list[int | None], total: int) -> float | None:
    known = [ns for ns in times if ns is not None]
    return sum(known) / total if len(known) == len(times) else None


def _entries(facts: Facts, role: str) -> list[ProfileEntry]:
    profile = facts.profile
    if not isinstance(profile, Measured):
        return []
    return [entry for entry in profile.value if entry.role == role and entry.ns > 0]


def profile_chart(facts: Facts, role: str) -> dict[str, Any] | None:
    """Return a tree map of one role's time: phases, and in each its lines; None without any."""
    times = line_times(facts, role)
    if not times:
        return None
    phases: dict[str, list[LineTime]] = defaultdict(list)
    for time in times:
        phases[time.phase].append(time)
    boxes: list[tuple[str, str, str, int, str, str]] = []
    for phase, lines in phases.items():
        colour = COLOURS.get(phase, OTHER)
        whole = sum(time.ns for time in lines)
        boxes.append((phase, "", label(phase_said(phase)), whole, colour, ""))
        for time in lines[:MOST_LINES]:
            name = label(time.place or "not in the user's files")
            text = label(readable(time.text)[:120])
            boxes.append((f"{phase} {name}", phase, name, time.ns, colour, text))
        rest = sum(time.ns for time in lines[MOST_LINES:])
        if rest:
            boxes.append((f"{phase} rest", phase, "other lines", rest, colour, ""))
    tree = {
        "type": "treemap",
        "ids": [box[0] for box in boxes],
        "parents": [box[1] for box in boxes],
        "labels": [box[2] for box in boxes],
        "values": [box[3] / 1e9 for box in boxes],
        "customdata": [box[5] for box in boxes],
        "marker": {"colors": [box[4] for box in boxes]},
        "branchvalues": "total",
        "tiling": {"pad": 2},
        "pathbar": {"visible": False},
        "sort": True,
        "textinfo": "label+percent root",
        "hovertemplate": "%{label}<br>%{percentRoot:.1%}, %{value:.3s} s<br>%{customdata}"
        "<extra></extra>",
    }
    leaves = sum(1 for box in boxes if box[1])
    # Where a box is too small for its words there are none.
    shape = layout(
        min(520, 200 + 16 * leaves),
        margin={"l": 0, "r": 0, "b": 8},
        uniformtext={"minsize": 10, "mode": "hide"},
    )
    return {"data": [tree], "layout": shape}
