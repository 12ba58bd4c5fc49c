"""Prints what hotlap costs a step on this machine's GPU: alternating runs, bare and measured.

    python tests/gpu/overhead.py

A table, not a test: times of one machine prove nothing on another.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = Path(__file__).with_name("gpu_train.py")
HOTLAP = [sys.executable, "-m", "hotlap", "run", "--quiet", "--", sys.executable]
TURNS = 5


def seconds(folder: Path, command: list[str], size: int, steps: int) -> float:
    """Return the seconds that all steps took, by the script's own clock."""
    log = folder / "log.json"
    options = ["--log", str(log), "--size", str(size), "--steps", str(steps)]
    options += ["--copy", "pinned"]
    subprocess.run([*command, str(SCRIPT), *options], cwd=folder, check=True)
    return float(json.loads(log.read_text())["seconds"])


def main() -> None:
    """Run and print."""
    print("size   bare us/step   measured us/step   difference (medians of", TURNS, "runs)")
    for size, steps in ((64, 5000), (1024, 2000), (4096, 200)):
        bare, measured = [], []
        with tempfile.TemporaryDirectory() as name:
            for _ in range(TURNS):
                bare.append(seconds(Path(name), [sys.executable], size, steps))
                measured.append(seconds(Path(name), HOTLAP, size, steps))
        a, b = (statistics.median(one) / steps * 1e6 for one in (bare, measured))
        print(f"{size:5d} {a:13.1f} {b:18.1f} {b - a:12.1f}")


if __name__ == "__main__":
    main()
