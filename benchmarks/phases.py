"""In which part of a step hotlap's hooks spend what they add.

The same training and the same blocks as in ``overhead``, with the clock read between the parts of
each step. What a part adds to a short one is known much better than what it adds to the whole step,
whose own work varies by more.
"""

from __future__ import annotations

from statistics import median

from benchmarks.intervals import Interval
from benchmarks.overhead import Case, difference, processes
from benchmarks.surroundings import keep, table


def cases(quick: bool) -> list[Case]:
    """Return a short and a long step."""
    if quick:
        return [Case(2_000, 0, 8, 40, 16, phases=True)]
    return [
        Case(2_000, 0, 8, 40, 60, 4, phases=True),
        Case(10_000, 0, 8, 12, 80, 4, phases=True),
    ]


def run(quick: bool) -> None:
    """Measure, print and keep."""
    kept: dict[str, dict[str, Interval]] = {}
    for case in cases(quick):
        found = processes(case)
        rows = []
        added = kept.setdefault(case.name, {})
        parts = [name for name in found[0]["blocks"][0] if name != "hooked"]
        for part in parts:
            bare = [block[part] for one in found for block in one["blocks"] if not block["hooked"]]
            added[part] = interval = difference(found, part)
            rows.append([part, f"{median(bare) / 1000:.0f}", interval.text(digits=1)])
        rows.append(["", "", f"{sum(one.mid for one in added.values()):+.0f}"])
        head = ["part of the step", "CPU us", "+CPU us, median step"]
        table(f"{case.name}: what hotlap adds to each part (the last line is the sum)", head, rows)
    keep("phases", {case: _plain(parts) for case, parts in kept.items()})


def _plain(parts: dict[str, Interval]) -> dict[str, list[float]]:
    return {part: [one.low, one.mid, one.high] for part, one in parts.items()}
