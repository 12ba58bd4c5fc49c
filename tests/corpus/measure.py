"""Measures every slow script against its twin, interleaved, and keeps what it measured.

    python measure.py                      # what is not measured yet, three pairs each
    python measure.py 03 gan --pairs 5     # the cases whose names contain one of the words

Each pair runs both scripts one after the other in one folder outside the checkout, the twin last
in the first pair and in every second one after it; a run before them, which is not counted, makes
the data set. Nothing of the environment is changed: how OpenMP's idle threads wait, for one, moves
the ratio of some pairs by a factor. A result is kept under a hash of the scripts and the command,
so that a changed script is measured anew and an interrupted measurement goes on where it stood.
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import re
import resource
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results.json"
LIMIT_S = 400


def main() -> None:
    """Measure what the command line asks for and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of names; all cases without any")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--table", action="store_true", help="only print what is known")
    parser.add_argument("--labels", action="store_true", help="write what is known into labels")
    parser.add_argument("--again", action="store_true", help="forget what is known of them")
    given = parser.parse_args()
    for folder, twin in cases(given.words):
        if not given.table:
            if given.again:
                change(given.results, key(folder, twin), None)
            try:
                measure(folder, twin, given.pairs, given.results)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"{folder.name}: {error}", file=sys.stderr, flush=True)
        show(folder, twin, given.results)
        if given.labels:
            write(folder, twin, given.results)


def cases(words: list[str]) -> list[tuple[Path, str]]:
    """Return every (folder, twin) whose name contains one of the words."""
    found = []
    for folder in sorted(path.parent for path in HERE.glob("*/label.toml")):
        if not words or any(word in folder.name for word in words):
            found += [(folder, twin.name) for twin in sorted(folder.glob("fixed*.py"))]
    return found


def label(folder: Path) -> dict[str, Any]:
    """Return the label of a case."""
    return tomllib.loads((folder / "label.toml").read_text(encoding="utf-8"))


def key(folder: Path, twin: str) -> str:
    """Return what a result is kept under: a hash of both scripts and the command."""
    digest = hashlib.sha256()
    for name in ("slow.py", twin):
        digest.update((folder / name).read_bytes())
    digest.update(label(folder)["command"].encode())
    return digest.hexdigest()[:16]


def measure(folder: Path, twin: str, pairs: int, results: Path) -> None:
    """Run the pairs that are still missing; keep each one as soon as it is there."""
    told, name = label(folder), key(folder, twin)
    empty: dict[str, Any] = {"case": folder.name, "twin": twin, "wall": [], "cpu": [], "steps": []}
    known = read(results).get(name, empty)
    if len(known["wall"]) >= pairs:
        return
    with tempfile.TemporaryDirectory(prefix="corpus-") as place:
        for script in ("slow.py", twin):
            shutil.copy(folder / script, place)
        run(told, twin, place)
        while len(known["wall"]) < pairs:
            known = one_more(told, known, place)
            change(results, name, known)


def one_more(told: dict[str, Any], known: dict[str, Any], place: str) -> dict[str, Any]:
    """Run one more pair, in the order that is due, and return what is known with it."""
    twin, more = known["twin"], {**known, "at": round(time.time())}
    order = ["slow.py", twin]
    if len(known["wall"]) % 2:
        order.reverse()
    timed = {script: run(told, script, place) for script in order}
    for column, what in enumerate(("wall", "cpu", "steps")):
        more[what] = [*known[what], [timed["slow.py"][column], timed[twin][column]]]
    return more


def beside(folder: Path, place: str, pairs: int, results: Path) -> None:
    """Forget what is known of a case, and run its pairs where its data set has been made."""
    for _, twin in cases([folder.name]):
        shutil.copy(folder / twin, place)
        known: dict[str, Any] = {"case": folder.name, "twin": twin}
        known.update(wall=[], cpu=[], steps=[])
        for _ in range(pairs):
            known = one_more(label(folder), known, place)
        change(results, key(folder, twin), known)
        (Path(place) / twin).unlink()


def run(told: dict[str, Any], script: str, place: str) -> tuple[float, float, float | None]:
    """Run one script; return wall time, CPU time, and its own clock of its steps, in seconds.

    Where the script prints a rate, the last number is the time per unit of that rate.
    """
    words = shlex.split(told["command"].replace("slow.py", script))
    torchrun = [sys.executable, "-m", "torch.distributed.run"]
    program = {"python": [sys.executable], "torchrun": torchrun}
    began, spent = time.perf_counter(), cpu_seconds()
    done = subprocess.run(
        [*program[words[0]], *words[1:]],
        cwd=place,
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    wall = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{place}/{script} ended with {done.returncode}:\n{done.stderr[-3000:]}")
    spent = cpu_seconds() - spent
    return round(wall, 3), round(spent, 3), clocked(told.get("clock"), done.stdout)


def cpu_seconds() -> float:
    """Return the CPU time of all children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def clocked(pattern: str | None, text: str) -> float | None:
    """Return the sum of all seconds, or one over the last rate, that a pattern finds in a text."""
    if pattern is None:
        return None
    found = list(re.finditer(pattern, text))
    if not found:
        return None
    if "rate" in found[0].groupdict():
        return round(1 / float(found[-1]["rate"]), 6)
    return round(sum(float(match["seconds"]) for match in found), 3)


def read(results: Path) -> dict[str, Any]:
    """Return what is kept, by hash."""
    return json.loads(results.read_text(encoding="utf-8")) if results.exists() else {}


def change(results: Path, name: str, entry: dict[str, Any] | None) -> None:
    """Put one entry, or take it away, and leave the file whole at any moment."""
    with open(results.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        _change(results, name, entry)


def _change(results: Path, name: str, entry: dict[str, Any] | None) -> None:
    kept = read(results)
    kept.pop(name, None)
    if entry is not None:
        kept[name] = entry
    ordered = dict(sorted(kept.items(), key=lambda item: (item[1]["case"], item[1]["twin"])))
    lines = [f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in ordered.items()]
    fresh = results.with_suffix(".new")
    fresh.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    fresh.replace(results)


def show(folder: Path, twin: str, results: Path) -> None:
    """Print one line of the table."""
    entry = read(results).get(key(folder, twin))
    if entry is None:
        print(f"{folder.name:30s} {twin:12s} not measured")
        return
    slow = statistics.median(pair[0] for pair in entry["wall"])
    fixed = statistics.median(pair[1] for pair in entry["wall"])
    words = f"{folder.name:30s} {twin:12s} {slow:6.1f} s {fixed:6.1f} s"
    for what in ("wall", "cpu", "steps"):
        ratios = sorted(a / b for a, b in entry[what] if a and b)
        if ratios:
            middle = statistics.median(ratios)
            words += f"   {what} {middle:.2f} ({ratios[0]:.2f}-{ratios[-1]:.2f}, n={len(ratios)})"
    print(words, flush=True)


def write(folder: Path, twin: str, results: Path) -> None:
    """Put the measured ratios below the line of the label that names the twin."""
    entry = read(results).get(key(folder, twin))
    path, names = (
        folder / "label.toml",
        {"wall": "ratio", "cpu": "cpu_ratio", "steps": "steady_ratio"},
    )
    lines, at = path.read_text(encoding="utf-8").splitlines(), None
    kept = []
    for line in lines:
        if line.startswith("twin = "):
            at = line == f'twin = "{twin}"'
        if not (at and line.split(" = ")[0] in names.values()):
            kept.append(line)
        if line == f'twin = "{twin}"' and entry is not None:
            for what, name in names.items():
                ratios = sorted(a / b for a, b in entry[what] if a and b)
                if ratios:
                    low, middle, high = ratios[0], statistics.median(ratios), ratios[-1]
                    told = f"median = {middle:.2f}, low = {low:.2f}, high = {high:.2f}"
                    kept.append(f"{name} = {{ {told}, pairs = {len(ratios)} }}")
    path.write_text("\n".join(kept) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
