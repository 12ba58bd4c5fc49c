"""A training step with hotlap's hooks in and out, alternating in one process.

Main figure: CPU time of the training thread per step, which other jobs on the machine disturb
least. Each block of steps gives a mean (all that is spent, the flush once a second included) and
a median step; a pair of neighbouring blocks gives a difference; of the differences the median is
reported with a 95 % interval.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.intervals import Interval, nested_interval
from benchmarks.surroundings import keep, load, table

SCRIPTS = Path(__file__).parent / "scripts"
BOUND_US = 50.0
BOUND_SHARE = 0.01
LONG_US = 8_000
STEADY_MEMORY = {"MALLOC_TRIM_THRESHOLD_": "1073741824", "MALLOC_MMAP_THRESHOLD_": "1073741824"}
"""The C library keeps what is freed. Else a step faults in between none and hundreds of pages
again, from block to block another number, hooks in or out: more time than is measured here."""


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
    """In each process."""
    processes: int = 1
    pure: bool = False
    phases: bool = False
    """Clock the parts of each step, not the steps."""

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

    def words(self, width: int | None = None) -> list[str]:
        """Return the options that the scripts understand. width: None has them look for it."""
        target = ["--target-us", str(self.target_us)] if self.target_us else ["--width", "16"]
        target = target if width is None else ["--width", str(width)]
        flags = ["--pure"] * self.pure + ["--phases"] * self.phases
        return [
            "--model",
            self.model,
            *target,
            "--workers",
            str(self.workers),
            "--batch",
            str(self.batch),
            *flags,
        ]


def cases(quick: bool) -> list[Case]:
    """Return all combinations of step, workers and batch; a few of them when time is short."""
    if quick:
        chosen = [(300, 0, 8, 150, 8), (300, 2, 64, 150, 8), (10_000, 0, 64, 25, 8)]
        return [Case(*one) for one in chosen]
    # Long enough after the start of workers, whose fork makes the training's next writes to each
    # page dear; short without them, so that both blocks of a pair see the same machine. Where a
    # block's memory comes to lie moves it as a whole, so many short ones tell more than few long.
    lengths = (
        # target, workers, steps, pairs, processes
        (300, 0, 200, 30, 6),
        (300, 2, 200, 20, 6),
        (2_000, 0, 80, 40, 6),
        (2_000, 2, 80, 30, 6),
        (10_000, 0, 12, 120, 6),
        (10_000, 2, 40, 30, 6),
    )
    found = [
        Case(target, workers, batch, steps, pairs, processes)
        for target, workers, steps, pairs, processes in lengths
        for batch in (8, 64)
    ]
    return [*found, Case(0, 0, 8, 40, 30, 6)]


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
    return _result(case, processes(case))


def processes(case: Case) -> list[dict[str, Any]]:
    """Return what each process of a case measured; raises RuntimeError as ``measure`` does."""
    first = _one_process(case, 0, None)
    more = [_one_process(case, number, first["width"]) for number in range(1, case.processes)]
    return [first, *more]


def _one_process(case: Case, number: int, width: int | None) -> dict[str, Any]:
    """Return what one process measured. width: None has it look for the case's own."""
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as folder:
        command = [sys.executable, str(SCRIPTS / "alternating.py"), *case.words(width)]
        command += ["--steps", str(case.steps), "--pairs", str(case.pairs), "--seed", str(number)]
        done = subprocess.run(
            [*command, "--run", folder],
            capture_output=True,
            text=True,
            check=False,
            cwd=folder,
            env={**os.environ, **STEADY_MEMORY},
        )
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}: {done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if found["lost"]:
        raise RuntimeError(f"the record could not be written: {found['lost']}")
    return found


def _result(case: Case, found: Sequence[dict[str, Any]]) -> Result:
    blocks = [block for one in found for block in one["blocks"]]
    bare = [block for block in blocks if not block["hooked"]]
    cpu_us = median(block["cpu_mean_ns"] for block in bare) / 1000
    cpu = difference(found, "cpu_mean_ns")
    return Result(
        case=case.name,
        width=found[0]["width"],
        load=load(),
        bare_cpu_us=cpu_us,
        bare_wall_us=median(block["wall_median_ns"] for block in bare) / 1000,
        cpu=cpu,
        cpu_median_step=difference(found, "cpu_median_ns"),
        wall_median_step=difference(found, "wall_median_ns"),
        workers_cpu=difference(found, "workers_cpu_ns") if case.workers else None,
        share=Interval(cpu.low / cpu_us, cpu.mid / cpu_us, cpu.high / cpu_us, cpu.pairs),
    )


def difference(found: Sequence[dict[str, Any]], name: str) -> Interval:
    """Return hooks in minus hooks out, in microseconds per step."""
    return nested_interval([_differences(one["blocks"], name) for one in found])


def _differences(blocks: Sequence[dict[str, Any]], name: str) -> list[float]:
    found = []
    for first, second in zip(blocks[::2], blocks[1::2], strict=True):
        hooked, bare = (first, second) if first["hooked"] else (second, first)
        found.append((hooked[name] - bare[name]) / 1000)
    return found


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
