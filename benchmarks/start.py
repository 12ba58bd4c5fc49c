"""What it costs to start: imports, ``--help``, a launched command, and a process's own start.

All commands are run in turn, again and again; medians of the wall time, and of differences within
the same turn with their 95 % intervals.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import hotlap
from benchmarks.intervals import median_interval
from benchmarks.surroundings import keep, load, table

IMPORT_GOAL_MS = 150
HELP_GOAL_MS = 300
HERE = Path(hotlap.__file__).parent
SITE = HERE / "inject" / "site"
BLANK = [sys.executable, "-c", "pass"]
TORCH = [sys.executable, "-c", "import torch"]
LET_IN = """
import torch, json, os, sys, time
from pathlib import Path
begun = time.perf_counter_ns()
from hotlap.inject.session import Session
loaded = time.perf_counter_ns()
session = Session(Path(sys.argv[1]), os.getcwd())
session.begin()
print(json.dumps([loaded - begun, time.perf_counter_ns() - loaded]))
"""


def _seconds(command: Sequence[str], environ: Mapping[str, str] | None = None) -> float:
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environ)
    return time.perf_counter() - begun


def _environ(scratch: Path, in_site: bool) -> dict[str, str]:
    """Return an environment as a launched process has it; in_site: with the handoff as well."""
    environ = {name: value for name, value in os.environ.items() if name != "HOTLAP_HANDOFF"}
    environ["PYTHONPATH"] = str(SITE)
    if in_site:
        handoff = scratch / "handoff.json"
        content = {"format": 1, "run_dir": str(scratch), "package_dir": str(HERE)}
        handoff.write_text(json.dumps({**content, "start_dir": str(scratch)}))
        environ["HOTLAP_HANDOFF"] = str(handoff)
    return environ


def measure(turns: int, torch_turns: int) -> dict[str, Any]:
    """Take the times, in milliseconds, one list per command; ``let_in`` splits the injection."""
    tool = [sys.executable, "-m", "hotlap"]
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as name:
        scratch = Path(name)
        site, door = _environ(scratch, False), _environ(scratch, True)
        plain: dict[str, Callable[[], float]] = {
            "python -c pass": lambda: _seconds(BLANK),
            "python -c 'import hotlap'": lambda: _seconds([sys.executable, "-c", "import hotlap"]),
            "hotlap --help": lambda: _seconds([*tool, "--help"]),
            "hotlap run --quiet python -c pass": lambda: _seconds(
                [*tool, "run", "--quiet", "-o", str(scratch / f"run{time.time_ns()}"), *BLANK]
            ),
            "python -c pass, site folder on PYTHONPATH": lambda: _seconds(BLANK, site),
            "python -c pass, let in": lambda: _seconds(BLANK, door),
        }
        heavy: dict[str, Callable[[], float]] = {
            "python -c 'import torch'": lambda: _seconds(TORCH),
            "python -c 'import torch', let in": lambda: _seconds(TORCH, door),
        }
        for one in (*plain.values(), *heavy.values()):
            one()  # once for the caches, not counted
        for _ in range(turns):
            for label, call in plain.items():
                times.setdefault(label, []).append(call() * 1000)
        parts = []
        for _ in range(torch_turns):
            for label, call in heavy.items():
                times.setdefault(label, []).append(call() * 1000)
            command = [sys.executable, "-c", LET_IN, str(scratch / "let_in")]
            text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            parts.append([ns / 1e6 for ns in json.loads(text.splitlines()[-1])])
    return {"times_ms": times, "let_in_ms": parts, "load": load()}


def run(quick: bool) -> bool:
    """Measure, print and keep; return whether both goals are met."""
    found = measure(5 if quick else 15, 2 if quick else 6)
    times = found["times_ms"]
    bare = times["python -c pass"]
    with_torch = times["python -c 'import torch'"]
    rows = []
    goals = {"python -c 'import hotlap'": IMPORT_GOAL_MS, "hotlap --help": HELP_GOAL_MS}
    met = True
    for label, taken in times.items():
        base = with_torch if "torch" in label else bare
        more = [a - b for a, b in zip(taken, base, strict=True)]
        interval = median_interval(more)
        goal = goals.get(label)
        # The goal for the import is for what it adds to Python's own start.
        value = interval.mid if label.endswith("hotlap'") else median(taken)
        met = met and (goal is None or value < goal)
        said = "-" if goal is None else f"{goal} ms: {'yes' if value < goal else 'no'}"
        rows.append(
            [label, f"{median(taken):.0f}", "-" if taken is base else interval.text(), said]
        )
    table("Start, in ms", ["command", "wall", "more than without", "goal"], rows)
    loading, installing = (median(part[i] for part in found["let_in_ms"]) for i in (0, 1))
    print(
        f"\n  inside a process that has torch: {loading:.1f} ms to import the probe, "
        f"{installing:.1f} ms to install the hooks"
    )
    keep("start", found)
    return met
