"""Runs ``hotlap diagnose`` on the corpus and compares what it says with the labels.

    python diagnosed.py                    # every case that is not known yet
    python diagnosed.py 03 gan             # cases whose names contain one of the words
    python diagnosed.py --again --pairs 1  # after a pair, which the bounds are held against
    python diagnosed.py --table            # only what is known
    python diagnosed.py --table --keep     # and write it to last.tsv, which is part of the project

A result is kept under a hash of the scripts, the label's command and hotlap's own code, so that an
interrupted run goes on where it stood and a changed rule is asked anew. The diagnoses themselves
are kept beside (``results/diagnoses``): ``--judge`` reads the stored facts again with the rules as
they are now, without running a script.

Right means: the first finding names the phase, a line within 3 of the label's, and in plain words
one of the label's cause words. Bounds are right when the measured slow/fixed ratio lies in them.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shlex
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import measure

HERE = Path(__file__).resolve().parent
RESULTS = HERE / "results"
LAST = HERE / "last.tsv"
HEAD = ("case", "code", "line", "cause", "place", "measured", "low", "high", "beside", "date")
SOURCE = HERE.parents[1] / "src" / "hotlap"
NEAR = 3
LIMIT_S = 900


def main() -> None:
    """Diagnose what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of names; all cases without any")
    parser.add_argument("--table", action="store_true", help="only print what is known")
    parser.add_argument("--judge", action="store_true", help="judge stored facts anew")
    parser.add_argument("--again", action="store_true", help="diagnose also what is known")
    parser.add_argument("--pairs", type=int, default=0, help="pairs to measure before each one")
    parser.add_argument("--keep", action="store_true", help="write the table to last.tsv")
    given = parser.parse_args()
    rows = []
    for folder in folders(given.words):
        path = stored(folder)
        if given.judge:
            judge_again(path)
        elif not given.table and (given.again or not is_current(folder, path)):
            diagnose(folder, path, given.pairs)
        if path.exists():
            rows.append(compared(folder, json.loads(path.read_text(encoding="utf-8"))))
            print(line(rows[-1]), flush=True)
    summary(rows)
    if given.keep:
        LAST.write_text("".join(map(kept_line, [HEAD, *map(cells, rows)])), encoding="utf-8")


def folders(words: list[str]) -> list[Path]:
    """Return the cases whose names contain one of the words."""
    found = sorted(path.parent for path in HERE.glob("*/label.toml"))
    return [one for one in found if not words or any(word in one.name for word in words)]


def stored(folder: Path) -> Path:
    """Return the file that holds a case's diagnosis."""
    return RESULTS / "diagnoses" / f"{folder.name}.json"


def key(folder: Path) -> str:
    """Return a hash of the script, its command, and hotlap's code."""
    digest = hashlib.sha256((folder / "slow.py").read_bytes())
    digest.update(measure.label(folder)["command"].encode())
    for path in sorted(SOURCE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def is_current(folder: Path, path: Path) -> bool:
    """Tell whether a case was diagnosed as it and hotlap are now."""
    return path.exists() and json.loads(path.read_text())["key"] == key(folder)


def diagnose(folder: Path, path: Path, pairs: int = 0) -> None:
    """Diagnose one case in a copy of its folder; keep the JSON and the facts.

    A run before it makes the data set, as for the pairs that ``measure.py`` times. pairs: such
    pairs, measured here and now.
    """
    told = measure.label(folder)
    words = shlex.split(told["command"])
    with tempfile.TemporaryDirectory(prefix="corpus-") as place:
        here = Path(place) / "work"
        here.mkdir()
        shutil.copy(folder / "slow.py", here)
        measure.run(told, "slow.py", str(here))
        if pairs:
            measure.beside(folder, str(here), pairs, measure.RESULTS)
        environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            [sys.executable, "-m", "hotlap", "diagnose", "--json", "out.json", "--", *words],
            cwd=here,
            env=environ,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
        )
        out = here / "out.json"
        said = json.loads(out.read_text()) if out.exists() else None
        facts = next(iter(sorted(here.glob(".hotlap/runs/*/facts.json"))), None)
        path.parent.mkdir(parents=True, exist_ok=True)
        if facts is not None:
            shutil.copy(facts, facts_of(path))
    if said is None:
        raise SystemExit(f"{folder.name}: exit {done.returncode}\n{done.stderr[-2000:]}")
    kept = {"key": key(folder), "exit": done.returncode, "said": said, "page": done.stdout}
    kept["at"] = round(time.time())
    path.write_text(json.dumps(kept), encoding="utf-8")


def facts_of(path: Path) -> Path:
    """Return the file that holds a case's facts."""
    return path.with_suffix(".facts.json")


def judge_again(path: Path) -> None:
    """Judge a case's stored facts with the rules as they are now."""
    if not path.exists() or not facts_of(path).exists():
        return
    from hotlap.diagnose import judge
    from hotlap.experiment.stored import load
    from hotlap.report.diagnosis_json import diagnosis_json

    facts = load(facts_of(path))
    kept = json.loads(path.read_text(encoding="utf-8"))
    kept["said"] = diagnosis_json(facts, judge(facts))
    path.write_text(json.dumps(kept), encoding="utf-8")


def compared(folder: Path, kept: dict[str, Any]) -> dict[str, Any]:
    """Return how a diagnosis compares with the label."""
    label = measure.label(folder)
    said = kept["said"]
    findings = said["findings"]
    row: dict[str, Any] = {"name": folder.name, "healthy": label["healthy"], "said": findings[:3]}
    row["headline"] = said["verdict"]["headline"]
    row["at"] = kept.get("at")
    if label["healthy"]:
        row["right"] = not findings
        return row
    causes = label.get("causes") or [label]
    first = findings[0] if findings else None
    row["cause"] = any(matches(first, one) for one in causes)
    row["line"] = any(near(first, one) for one in causes)
    row["any"] = any(matches(f, one) and near(f, one) for f in findings for one in causes)
    row["right"] = row["cause"] and row["line"]
    # What is predicted refers to the whole run where it was seen, else to its steps.
    # Of two causes it is that of the one that the finding names.
    named = next((one for one in causes if matches(first, one) and near(first, one)), label)
    whole = said.get("run", {}).get("whole") or "steady_ratio" not in named
    ratio = ratio_of(folder, named, whole=bool(whole))
    bounds = first["predicted_speedup"] if first else None
    if ratio and bounds and bounds["low"] and bounds["high"]:
        row["ratio"], row["bounds"] = ratio, (bounds["low"], bounds["high"])
        row["inside"] = bounds["low"] <= ratio <= bounds["high"]
        row["beside"] = was_measured_beside(folder, kept.get("at"))
    return row


def ratio_of(folder: Path, cause: dict[str, Any], *, whole: bool) -> float | None:
    """Return slow by fixed as it was last measured here, else as the label has it."""
    entry = measure.read(measure.RESULTS).get(measure.key(folder, cause["twin"]))
    pairs = entry["wall" if whole else "steps"] if entry else ()
    ratios = [slow / fixed for slow, fixed in pairs if slow and fixed]
    if ratios:
        return statistics.median(ratios)
    found = cause.get("ratio" if whole else "steady_ratio", {}).get("median")
    return None if found is None else float(found)


def was_measured_beside(folder: Path, at: int | None) -> bool:
    """Tell whether a case's pairs were measured within an hour of its diagnosis.

    Later or earlier the machine may be another: neighbours, clock rates, free memory.
    """
    pairs = [one for one in measure.read(measure.RESULTS).values() if one["case"] == folder.name]
    instants = [one.get("at") for one in pairs]
    return at is not None and any(one and abs(one - at) <= 3600 for one in instants)


def matches(finding: dict[str, Any] | None, cause: dict[str, Any]) -> bool:
    """Tell whether a finding has the label's phase and one of its words."""
    if finding is None:
        return False
    phases = [cause["phase"], *cause.get("also", [])]
    say = finding["say"].lower()
    return finding["phase"] in phases and any(re.search(w, say) for w in cause["cause_words"])


def near(finding: dict[str, Any] | None, cause: dict[str, Any]) -> bool:
    """Tell whether a finding's first place is within 3 lines of the label's."""
    if finding is None or not finding["locations"]:
        return False
    place = finding["locations"][0]
    lines = cause.get("lines") or [cause["line"]]
    return place["file"] == cause["file"] and any(abs(place["line"] - n) <= NEAR for n in lines)


def line(row: dict[str, Any]) -> str:
    """Return one line of the table."""
    if row["healthy"]:
        word = "right" if row["right"] else "CLAIMED"
        more = "" if row["right"] else f"  {row['said'][0]['code']} {row['said'][0]['say'][:90]}"
        return f"{row['name']:<28} healthy {word}{more}"
    first = row["said"][0] if row["said"] else None
    code = first["code"] if first else "none "
    place = first["locations"][0]["line"] if first and first["locations"] else "-"
    marks = " ".join(
        f"{name} {'yes' if row.get(name) else 'NO '}" for name in ("cause", "line", "any")
    )
    bounds = ""
    if "inside" in row:
        low, high = row["bounds"]
        word = "in" if row["inside"] else "OUT"
        bounds = f"  {row['ratio']:.2f} {word} {low:.2f}..{high:.2f}"
    return f"{row['name']:<28} {code}:{place:<4} {marks}{bounds}"


def cells(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return a row of ``last.tsv``, in the order of ``HEAD``."""
    first = row["said"][0] if row["said"] else None
    place = first["locations"][0]["line"] if first and first["locations"] else None
    day = time.strftime("%Y-%m-%d", time.gmtime(row["at"])) if row["at"] else None
    told = (row["name"], first["code"] if first else None, place)
    if row["healthy"]:
        return (*told, row["right"], row["right"], None, None, None, None, day)
    low, high = row.get("bounds", (None, None))
    ratios = [None if one is None else f"{one:.2f}" for one in (row.get("ratio"), low, high)]
    return (*told, row.get("cause"), row.get("line"), *ratios, row.get("beside"), day)


def kept_line(found: Sequence[Any]) -> str:
    """Return cells as a line: yes, no, and nothing for what is not known."""
    words = [
        "" if one is None else {"True": "yes", "False": "no"}.get(str(one), str(one))
        for one in found
    ]
    return "\t".join(words) + "\n"


def summary(rows: list[dict[str, Any]]) -> None:
    """Print the totals."""
    slow = [row for row in rows if not row["healthy"]]
    healthy = [row for row in rows if row["healthy"]]
    bounded = [row for row in slow if "inside" in row]
    if slow:
        print(f"\ncause right  {share(slow, 'cause')}   goal 95 %")
        print(f"line right   {share(slow, 'line')}   goal 90 %")
        print(f"both right   {share(slow, 'right')}")
    if bounded:
        width = statistics.median(row["bounds"][1] / row["bounds"][0] for row in bounded)
        print(f"bounds right {share(bounded, 'inside')}   goal 85 %")
        print(f"median of high/low {width:.2f}   goal at most 1.3")
    beside = [row for row in bounded if row["beside"]]
    if beside:
        width = statistics.median(row["bounds"][1] / row["bounds"][0] for row in beside)
        words = f"{share(beside, 'inside')}, median of high/low {width:.2f}"
        print(f"of those whose pairs were measured within an hour of the diagnosis: {words}")
    if healthy:
        print(f"healthy and nothing claimed {share(healthy, 'right')}   goal all")


def share(rows: list[dict[str, Any]], name: str) -> str:
    """Return how many of the rows have a mark."""
    count = sum(1 for row in rows if row.get(name))
    return f"{count} of {len(rows)} ({count / len(rows):.0%})"


if __name__ == "__main__":
    main()
