"""The machine and the versions that a figure belongs to; tables on the terminal."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parent / "results"


def load() -> float:
    """Return the load average of the last minute."""
    return os.getloadavg()[0]


def surroundings() -> dict[str, Any]:
    """Return what a reader must know of the machine: processor, load, versions, date."""
    return {
        "date": time.strftime("%Y-%m-%d %H:%M:%S %z"),
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load_average": round(load(), 2),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "torch": _version("torch"),
        "hotlap": _version("hotlap"),
    }


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def keep(part: str, content: dict[str, Any]) -> None:
    """Write one part's results, with the machine they belong to, to ``results/PART.json``."""
    RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"surroundings": surroundings(), **content}, indent=1)
    (RESULTS / f"{part}.json").write_text(text + "\n")


def table(title: str, head: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print a table; the first column is left-aligned, the others right-aligned."""
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    print(f"\n{title}\n")
    for row in (head, *rows):
        cells = [
            cell.ljust(w) if i == 0 else cell.rjust(w)
            for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        print("  " + "  ".join(cells).rstrip(), flush=True)
