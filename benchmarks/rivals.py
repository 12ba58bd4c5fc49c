"""Whole runs of the same script: bare, under hotlap, and under other tools.

Each tool lies in an environment of its own, under a cache folder outside the checkout, and sees
the torch of this one. All tools run with their defaults; what differs is said in ``TOOLS``. The
script clocks its own steps. A round is: bare, the tools in random order, bare again; the two bare
runs give what a tool's run is compared with, and their difference is the noise.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.overhead import SCRIPTS, Case
from benchmarks.surroundings import keep, load, table

LIMIT_S = 300
PLAIN = str(SCRIPTS / "plain.py")
TRACED = str(SCRIPTS / "traced.py")


@dataclass(frozen=True)
class Tool:
    """A way to run the script. command: from the tool's bin folder, a scratch folder and the
    script's own options. package: on PyPI; empty for what is here already."""

    name: str
    command: Callable[[Path, Path, list[str]], list[str]]
    package: str = ""
    note: str = ""


def _bare(_bin: Path, _scratch: Path, words: list[str]) -> list[str]:
    return [sys.executable, PLAIN, *words]


def _hotlap(_bin: Path, scratch: Path, words: list[str]) -> list[str]:
    run = ["run", "--quiet", "-o", str(scratch / "run")]
    return [sys.executable, "-m", "hotlap", *run, sys.executable, PLAIN, *words]


def _traceml(folder: Path, scratch: Path, words: list[str]) -> list[str]:
    logs = ["--logs-dir", str(scratch / "logs")]
    return [str(folder / "traceml"), "run", *logs, TRACED, "--args", *words]


def _train_doctor(folder: Path, scratch: Path, words: list[str]) -> list[str]:
    window = ["--steps", "1000000000", "--out", str(scratch / "runs")]
    command = [str(folder / "train-doctor"), "profile", *window, "--"]
    return [*command, sys.executable, PLAIN, *words]


BARE = Tool("bare", _bare)
TOOLS = (
    Tool("hotlap run", _hotlap),
    Tool("traceml run", _traceml, "traceml-ai", "three lines added to the script"),
    Tool(
        "train-doctor profile",
        _train_doctor,
        "train-doctor",
        "--steps beyond the script's, since it ends a run when its window is full",
    ),
)


def cases(quick: bool) -> list[Case]:
    """Return the trainings; ``steps`` is the length of a run, ``pairs`` the number of rounds."""
    if quick:
        return [Case(300, 0, 8, 3_000, 1)]
    return [
        Case(300, 0, 8, 5_000, 2),
        Case(2_000, 2, 64, 1_200, 2),
        Case(10_000, 0, 64, 300, 2),
    ]


def cache_folder() -> Path:
    """Return where environments are kept between calls."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "hotlap-bench"


def prepare(package: str, cache: Path) -> tuple[Path, str]:
    """Make or bring up to date the environment of a package; return its bin folder and version.

    Raises RuntimeError with the installer's words when it cannot be had.
    """
    home = cache / package
    python = home / "bin" / "python"
    if not python.exists():
        _call(
            [sys.executable, "-m", "uv", "venv", "--quiet", "--python", sys.executable, str(home)]
        )
    code = "import sysconfig; print(sysconfig.get_paths()['purelib'])"
    packages = Path(_call([str(python), "-c", code]).strip())
    # Its own packages come first; torch and what torch needs are found here.
    (packages / "zz_torch.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    install = ["uv", "pip", "install", "--quiet", "--upgrade", "--python", str(python), package]
    trouble = ""
    try:
        _call([sys.executable, "-m", *install])
    except RuntimeError as error:
        trouble = str(error)
    code = f"import importlib.metadata as m; print(m.version({package!r}))"
    try:
        return python.parent, _call([str(python), "-c", code]).strip()
    except RuntimeError as error:
        raise RuntimeError(f"{package} could not be installed: {trouble or error}") from error


def _call(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=LIMIT_S)
    if done.returncode:
        raise RuntimeError(
            f"{' '.join(command)} ended with {done.returncode}: {done.stderr[-500:]}"
        )
    return done.stdout


def width_for(case: Case) -> int:
    """Return the model's width that makes a bare step of the target's CPU time."""
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as folder:
        words = [*case.words(), "--steps", "10", "--pairs", "0", "--run", folder]
        text = _call([sys.executable, str(SCRIPTS / "alternating.py"), *words])
    return int(json.loads(text.splitlines()[-1])["width"])


def one_run(tool: Tool, folder: Path, words: list[str]) -> dict[str, Any]:
    """Run the script once under a tool; return its own measurement and the wall time of all."""
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as name:
        scratch = Path(name)
        out = scratch / "out.json"
        command = tool.command(folder, scratch, [*words, "--out", str(out)])
        begun = time.perf_counter()
        try:
            done = subprocess.run(
                command, cwd=scratch, capture_output=True, text=True, check=False, timeout=LIMIT_S
            )
        except subprocess.TimeoutExpired:
            return {"error": f"not done after {LIMIT_S} s", "command": command}
        spent = time.perf_counter() - begun
        if not out.exists():
            words_of_it = (done.stderr or done.stdout)[-600:]
            error = f"no measurement, exit code {done.returncode}: {words_of_it}"
            return {"error": error, "command": command}
        return {**json.loads(out.read_text()), "run_s": spent, "command": command}


@dataclass
class Arm:
    """A tool, where it lies, and what came of it."""

    tool: Tool
    folder: Path
    version: str
    error: str = ""


def arms(cache: Path) -> list[Arm]:
    """Install all tools; one that cannot be had keeps its error."""
    found = []
    for tool in TOOLS:
        arm = Arm(tool, Path(sys.executable).parent, "")
        if tool.package:
            try:
                arm.folder, arm.version = prepare(tool.package, cache)
            except (RuntimeError, OSError, subprocess.SubprocessError) as error:
                arm.error = str(error)
        found.append(arm)
    return found


def rounds(case: Case, width: int, chosen: Sequence[Arm]) -> list[dict[str, Any]]:
    """Run all rounds of a case."""
    chance = random.Random(case.target_us)
    words = ["--model", case.model, "--width", str(width), "--workers", str(case.workers)]
    words += ["--batch", str(case.batch), "--steps", str(case.steps)]
    here = Path(sys.executable).parent
    found = []
    for _ in range(case.pairs):
        order = [arm for arm in chosen if not arm.error]
        chance.shuffle(order)
        one: dict[str, Any] = {"load": load(), "before": one_run(BARE, here, words)}
        for arm in order:
            one[arm.tool.name] = one_run(arm.tool, arm.folder, words)
        one["after"] = one_run(BARE, here, words)
        for name in ("before", "after"):
            if "error" in one[name]:
                raise RuntimeError(f"the bare script failed: {one[name]['error']}")
        found.append(one)
    return found


def run(quick: bool, cache: Path) -> None:
    """Measure all tools on all cases, print and keep what was found."""
    chosen = arms(cache)
    content: dict[str, Any] = {
        "tools": [
            {
                "name": arm.tool.name,
                "version": arm.version,
                "note": arm.tool.note,
                "error": arm.error or None,
            }
            for arm in chosen
        ],
        "cases": [],
    }
    for case in cases(quick):
        width = width_for(case)
        found = rounds(case, width, chosen)
        content["cases"].append({"case": case.name, "width": width, "rounds": found})
        show(case, found, chosen)
    keep("rivals", content)


def show(case: Case, found: Sequence[dict[str, Any]], chosen: Sequence[Arm]) -> None:
    """Print one case: each tool against the bare runs before and after it in the same round."""
    names = ("cpu_mean_ns", "cpu_median_ns", "wall_median_ns", "process_cpu_mean_ns")
    bare = {name: median(_bares(one, name) for one in found) for name in (*names, "run_s")}
    noise = [_spread([one["after"][n] - one["before"][n] for one in found], 1e-3) for n in names]
    first = [f"{bare[name] / 1000:.0f}" for name in names]
    rows = [["bare", *first, f"{bare['run_s']:.1f}"]]
    rows.append(
        [
            "  bare again, difference",
            *noise,
            _spread([one["after"]["run_s"] - one["before"]["run_s"] for one in found], 1, 1),
        ]
    )
    for arm in chosen:
        label = f"{arm.tool.name} {arm.version}".strip()
        runs = [one[arm.tool.name] for one in found if arm.tool.name in one]
        failed = [one["error"] for one in runs if "error" in one]
        if arm.error or failed or not runs:
            trouble = " ".join((arm.error or (failed or ["not run"])[0]).split())
            rows.append([f"{label}: {trouble[:90]}", *["-"] * 5])
            continue
        cells = [
            _spread([one[arm.tool.name][name] - _bares(one, name) for one in found], 1e-3)
            for name in names
        ]
        more = [one[arm.tool.name]["run_s"] - _bares(one, "run_s") for one in found]
        rows.append([label, *cells, _spread(more, 1, 1)])
    head = [f"us per step ({len(found)} rounds)", "CPU, mean", "CPU, median step"]
    head += ["wall, median step", "CPU of the process", "whole run, s"]
    table(f"Whole runs, {case.name}: difference from bare, median (lowest to highest)", head, rows)


def _bares(one: dict[str, Any], name: str) -> float:
    return float(one["before"][name] + one["after"][name]) / 2


def _spread(values: Sequence[float], scale: float, digits: int = 0) -> str:
    low, mid, high = (f"{f(values) * scale:+.{digits}f}" for f in (min, median, max))
    return mid if len(values) == 1 else f"{mid} ({low} to {high})"
