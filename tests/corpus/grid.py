"""Tries the usual knobs on the healthy scripts, by hand so to speak: their labels' variants.

    python grid.py                       # all of them, two rounds of sixty steps
    python grid.py texture --rounds 4

A variant is the script with some words replaced. The script as it is and each variant run in turn,
each until so many optimizer steps are done; what is compared are the times between steps, without
the first ten. A healthy script is one in which no variant is faster by a twentieth.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from measure import HERE, label

RUNNER = """
import json, os, runpy, sys, time
from torch.optim.optimizer import register_optimizer_step_post_hook
ends = []
def note(*_):
    ends.append(time.perf_counter())
    if len(ends) == int(sys.argv[1]):
        print("ENDS", json.dumps(ends), flush=True)
        os._exit(0)
register_optimizer_step_post_hook(note)
runpy.run_path("slow.py", run_name="__main__")
"""


def main() -> None:
    """Run the variants and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of names; all cases without any")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args()
    for folder in sorted(path.parent for path in HERE.glob("*/label.toml")):
        chosen = not given.words or any(word in folder.name for word in given.words)
        if chosen and label(folder)["healthy"]:
            tell(folder, given.rounds, given.steps)


def tell(folder: Path, rounds: int, steps: int) -> None:
    """Run one script and its variants in turn and print how they compare."""
    variants: dict[str, list[list[str]]] = {"as it is": [], **label(folder)["variants"]}
    times: dict[str, list[float]] = {name: [] for name in variants}
    for _ in range(rounds):
        for name, changes in variants.items():
            text = (folder / "slow.py").read_text(encoding="utf-8")
            for old, new in changes:
                if old not in text:
                    raise SystemExit(f"{folder.name}: {name}: {old!r} is not in the script")
                text = text.replace(old, new, 1)
            times[name] += run(text, steps)
    usual = statistics.median(times["as it is"])
    for name, taken in times.items():
        middle = statistics.median(taken)
        low, high = (f"{q * 1e3:.1f}" for q in statistics.quantiles(taken, n=4)[::2])
        words = f"{middle * 1e3:7.1f} ms ({low}-{high}), {usual / middle:.2f} times as fast"
        print(f"{folder.name:20s} {name:20s} {words}", flush=True)


def run(text: str, steps: int) -> list[float]:
    """Run a script until its optimizer has stepped so often; return the times between steps."""
    with tempfile.TemporaryDirectory(prefix="corpus-") as place:
        Path(place, "slow.py").write_text(text, encoding="utf-8")
        Path(place, "runner.py").write_text(RUNNER, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "runner.py", str(steps)],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
        )
    told = [line for line in done.stdout.splitlines() if line.startswith("ENDS ")]
    if not told:
        raise SystemExit(done.stderr[-3000:])
    ends = [float(word) for word in told[0][6:-1].split(", ")]
    return [after - before for before, after in zip(ends[10:], ends[11:], strict=False)]


if __name__ == "__main__":
    main()
