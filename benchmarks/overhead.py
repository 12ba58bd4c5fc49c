"""A training step with hotlap's hooks in and out, alternating in one process.

Main figure: CPU time of the training thread per step, which other jobs on the machine disturb
least. Each block of steps gives a mean (all that is spent, the flush once a second included) and
a median step; a pair of neighbouring blocks gives a difference; of the differences the median is
reported with a 95 % interval.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.intervals import Interval, median_interval
from benchmarks.surroundings import keep, load, table

SCRIPTS = Path(__file__).parent / "scripts"
BOUND_US = 50.0
BOUND_SHARE = 0.01
LONG_US = 8_000


@dataclass(frozen=True)
class Case:
    """One training. target_us: CPU time of a bare step to aim at; 0 for the deep model.

    Long steps are those of convolutions: a perceptron of 10 ms has gradients of 30 MB, which
    each step maps anew, and the page faults are noisier than what is measured here.
    """

    target_us: int
    workers: int
    batch: int
    steps: int
    pairs: int
    pure: bool = False

    @property
    def name(self) -> str:
        """Return what the tables call it."""
        size = f"{self.target_us / 1000:g} ms" if self.target_us else "100 submodules"
        pure = ", hooks in Python" if self.pure else ""
        return f"{size}, {self.workers} workers, batch {self.batch}{pure}"

    @property
    def model(self) -> str:
        """Return the kind of model that the scripts make."""
        if not self.target_us:
            return "deep"
        return "convolutions" if self.target_us >= LONG_US else "perceptron"

    def words(self) -> list[str]:
        """Return the options that the scripts understand."""
        target = ["--target-us", str(self.target_us)] if self.target_us else []
        pure = ["--pure"] if self.pure else []
        return [
            "--model",
            self.model,
            *target,
            "--workers",
            str(self.workers),
            "--batch",
            str(self.batch),
            *pure,
        ]


def cases(quick: bool) -> list[Case]:
    """Return all combinations of step, workers and batch; a few of them when time is short."""
    if quick:
        chosen = [(300, 0, 8, 150, 8), (300, 2, 64, 150, 8), (10_000, 0, 64, 25, 8)]
        return [Case(*one) for one in chosen]
    # Long enough after the start of workers, whose fork makes the training's next writes to each
    # page dear; short without them, so that both blocks of a pair see the same machine.
    found = [
        *(Case(300, workers, batch, 200, 120) for workers in (0, 2) for batch in (8, 64)),
        *(Case(2_000, workers, batch, 80, 250) for workers in (0, 2) for batch in (8, 64)),
        *(Case(10_000, 0, batch, 20, 160) for batch in (8, 64)),
        *(Case(10_000, 2, batch, 60, 80) for batch in (8, 64)),
    ]
    return [*found, Case(0, 0, 8, 40, 120)]


@dataclass(frozen=True)
class Result:
    """What hotlap adds to a step of one case, in microseconds; ``share`` of the bare step."""

    case: str
    width: int
    load: float
    bare_cpu_us: float
    bare_wall_us: float
    cpu: Interval
    cpu_median_step: Interval
    wall_median_step: Interval
    workers_cpu: Interval | None
    share: Interval


def measure(case: Case) -> Result:
    """Run one case. Raises RuntimeError with the script's own words when it fails."""
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as folder:
        command = [sys.executable, str(SCRIPTS / "alternating.py"), *case.words()]
        command += ["--width", "16", "--steps", str(case.steps), "--pairs", str(case.pairs)]
        done = subprocess.run(
            [*command, "--run", folder], capture_output=True, text=True, check=False, cwd=folder
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    found = json.loads(done.stdout.splitlines()[-1])
    if found["lost"]:
        raise RuntimeError(f"the record could not be written: {found['lost']}")
    return _result(case, found)


def _result(case: Case, found: dict[str, Any]) -> Result:
    blocks = found["blocks"]
    pairs = [sorted(blocks[i : i + 2], key=_hooked) for i in range(0, len(blocks), 2)]
    bare = [block for block in blocks if not block["hooked"]]
    cpu_us = median(block["cpu_mean_ns"] for block in bare) / 1000
    cpu = _difference(pairs, "cpu_mean_ns")
    return Result(
        case=case.name,
        width=found["width"],
        load=load(),
        bare_cpu_us=cpu_us,
        bare_wall_us=median(block["wall_median_ns"] for block in bare) / 1000,
        cpu=cpu,
        cpu_median_step=_difference(pairs, "cpu_median_ns"),
        wall_median_step=_difference(pairs, "wall_median_ns"),
        workers_cpu=_difference(pairs, "workers_cpu_ns") if case.workers else None,
        share=Interval(cpu.low / cpu_us, cpu.mid / cpu_us, cpu.high / cpu_us, cpu.pairs),
    )


def _hooked(block: dict[str, Any]) -> bool:
    return bool(block["hooked"])


def _difference(pairs: Sequence[Sequence[dict[str, Any]]], name: str) -> Interval:
    """Return hooks in minus hooks out, in microseconds per step."""
    return median_interval([(hooked[name] - bare[name]) / 1000 for bare, hooked in pairs])


def run(quick: bool, pure: bool = False, rows: Sequence[str] | None = None) -> bool:
    """Measure all cases, print and keep them; return whether no bound is known to be broken.

    pure: with hooks in Python, also where compiled ones are there. rows: how the names of the
    cases begin that are wanted; all without.
    """
    results = []
    chosen = [one for one in cases(quick) if one.name.startswith(tuple(rows or [""]))]
    for case in (replace(one, pure=pure) for one in chosen):
        results.append(measure(case))
        print(f"  {case.name}: {results[-1].cpu_median_step.text()} us", flush=True)
    show(results)
    keep("overhead", {"bound_us": BOUND_US, "cases": [asdict(one) for one in results]})
    return all(one.cpu_median_step.against(BOUND_US) != "no" for one in results)


def show(results: Sequence[Result]) -> None:
    """Print the table."""
    head = ["bare step", "CPU us", "wall us", "+CPU us, mean", "+CPU us, median step"]
    head += ["+wall us, median step", "+CPU us, workers", "share of CPU", "<50 us", "<1 %"]
    rows = []
    for one in results:
        long = one.bare_cpu_us >= LONG_US
        rows.append(
            [
                one.case,
                f"{one.bare_cpu_us:.0f}",
                f"{one.bare_wall_us:.0f}",
                one.cpu.text(),
                one.cpu_median_step.text(),
                one.wall_median_step.text(),
                one.workers_cpu.text() if one.workers_cpu else "-",
                f"{one.share.mid:+.1%}",
                one.cpu_median_step.against(BOUND_US),
                one.share.against(BOUND_SHARE) if long else "-",
            ]
        )
    table("What hotlap adds to a step: median of pairs, 95 % interval in brackets", head, rows)
