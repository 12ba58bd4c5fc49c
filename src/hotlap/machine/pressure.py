"""Pressure stall information: how long tasks of this machine waited for a resource.

Source: the kernel's ``accounting/psi`` document. ``some``: at least one task waited; ``full``: all
tasks that wanted to run waited. The figures are the whole machine's, also inside a container.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hotlap.machine.readfile import ROOT, read

RESOURCES: Final = ("cpu", "io", "memory")


@dataclass(frozen=True)
class Stall:
    """One line: share of the last 10 s (0-1) and cumulative time since boot."""

    share: float
    total_ns: int


def parse_pressure(text: str) -> dict[str, Stall]:
    """Parse one pressure file into ``{"some": …, "full": …}``; lines of other shape are skipped."""
    found: dict[str, Stall] = {}
    for line in text.splitlines():
        kind, *rest = line.split() or [""]
        values = dict(word.split("=", 1) for word in rest if "=" in word)
        try:
            found[kind] = Stall(float(values["avg10"]) / 100, int(values["total"]) * 1000)
        except (KeyError, ValueError):
            continue
    return found


def read_pressure(root: Path = ROOT) -> dict[str, Stall] | None:
    """Read all pressure as ``{"cpu_some": …, "io_full": …}``; None when the kernel has it off.

    Opening succeeds but reading fails where it is compiled in and switched off; both mean off.
    """
    found: dict[str, Stall] = {}
    for resource in RESOURCES:
        text = read(root / "proc/pressure" / resource)
        for kind, stall in parse_pressure(text or "").items():
            found[f"{resource}_{kind}"] = stall
    return found or None
