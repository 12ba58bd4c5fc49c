"""Runs ``hotlap tune`` on the corpus and compares what it gains with what the fixed twins gain.

    python tuned.py                        # every case that is not known yet
    python tuned.py 03 gan                 # cases whose names contain one of the words
    python tuned.py --table                # only what is known

Each case is tuned in a copy of its folder; the results are kept as JSON under ``results/tunings``,
by a hash of the script, its command and hotlap's own code. Nothing may run beside it.

``recovered`` is the logarithm of the whole run's speed-up over that of the twin's. Bounds are right
when what a knob brought, measured on top of those before it, lies in what was predicted for it.
"""

from __future__ import annotations

import argparse
import json
import math
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import diagnosed
import measure

LIMIT_S = 1800


def main() -> None:
    """Tune what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of names; all cases without any")
    parser.add_argument("--table", action="store_true", help="only print what is known")
    parser.add_argument("--again", action="store_true", help="tune also what is known")
    given = parser.parse_args()
    rows = []
    for folder in diagnosed.folders(given.words):
        path = diagnosed.RESULTS / "tunings" / f"{folder.name}.json"
        if not given.table and (given.again or not is_current(folder, path)):
            tune(folder, path)
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            rows.append(compared(folder, kept["tuning"]))
            print(line(rows[-1]), flush=True)
    summary(rows)


def is_current(folder: Path, path: Path) -> bool:
    """Tell whether a stored tuning is of the script, the command and hotlap as they are now."""
    if not path.exists():
        return False
    kept: str = json.loads(path.read_text(encoding="utf-8"))["key"]
    return kept == diagnosed.key(folder)


def tune(folder: Path, path: Path) -> None:
    """Tune a case in a copy of its folder and keep what it said; what failed is shown."""
    with tempfile.TemporaryDirectory(prefix="hotlap-corpus-") as place:
        own = Path(place) / folder.name
        shutil.copytree(folder, own, ignore=shutil.ignore_patterns("data", "__pycache__"))
        words = shlex.split(measure.label(folder)["command"])
        if words[0] == "python":
            words = words[1:]
        command = [sys.executable, "-m", "hotlap", "tune", "--json", "out.json", *words]
        done = subprocess.run(
            command, cwd=own, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if done.returncode != 0:
            print(f"{folder.name}: exit code {done.returncode}: {done.stderr[-300:]}")
            return
        tuning = json.loads((own / "out.json").read_text(encoding="utf-8"))
    path.parent.mkdir(parents=True, exist_ok=True)
    whole = {"key": diagnosed.key(folder), "tuning": tuning}
    path.write_text(json.dumps(whole), encoding="utf-8")


def compared(folder: Path, tuning: dict[str, Any]) -> dict[str, Any]:
    """Return one row: what the twin gains, what tuning gains, and how good predictions were."""
    label = measure.label(folder)
    twin = (label.get("ratio") or {}).get("median")
    gain = tuning["comparison"]["whole_run"] or tuning["comparison"]["ratio"]
    is_planned = bool(tuning["plan"])
    mid = gain["mid"] if gain is not None and is_planned else 1.0
    recovered = None
    if twin is not None and twin > 1.0:
        recovered = math.log(mid) / math.log(twin)
    predicted = [
        (one["predicted"], one["measured"]["mid"])
        for one in tuning["plan"]
        if one["predicted"]["low"] and one["predicted"]["high"] and one["measured"]
    ]
    return {
        "name": folder.name,
        "healthy": bool(label.get("healthy")),
        "twin": twin,
        "steps": tuning["comparison"]["ratio"],
        "run": mid,
        "recovered": recovered,
        "plan": {one["knob"]: one["value"] for one in tuning["plan"]},
        "bounds": [bounds["low"] <= mid <= bounds["high"] for bounds, mid in predicted],
        "widths": [bounds["high"] / bounds["low"] for bounds, _ in predicted],
        "same": tuning["equivalence"]["word"],
        "runs": len(tuning["runs"]),
    }


def line(row: dict[str, Any]) -> str:
    """Return a row in words."""
    twin = "healthy" if row["healthy"] else f"twin {row['twin'] or math.nan:.2f}"
    steps = f"{row['steps']['mid']:.2f}" if row["steps"] is not None and row["plan"] else "-"
    recovered = "" if row["recovered"] is None else f"{row['recovered']:5.0%}"
    plan = ", ".join(f"{knob}={value}" for knob, value in row["plan"].items()) or "no plan"
    return (
        f"{row['name']:<26} {twin:<10} run {row['run']:.2f} steps {steps:<5} {recovered:>6}  "
        f"{plan} ({row['same']}, {row['runs']} runs)"
    )


def summary(rows: list[dict[str, Any]]) -> None:
    """Print how many recover nine tenths of what the twin gains, and how good bounds were."""
    known = [row["recovered"] for row in rows if row["recovered"] is not None]
    right = [one for row in rows for one in row["bounds"]]
    if known:
        enough = sum(one >= 0.9 for one in known)
        print(f"\n{enough} of {len(known)} recover nine tenths of what the twin gains, or more")
    if right:
        print(f"predictions right {sum(right)} of {len(right)}")


if __name__ == "__main__":
    main()
