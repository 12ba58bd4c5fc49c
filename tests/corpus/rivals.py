"""Runs other tools on the slow scripts as they are, and compares what they say with the labels.

    python rivals.py                     # every case that is not known yet, by both tools
    python rivals.py 03 gan --tool train-doctor
    python rivals.py --table             # only what is known

Each tool lies in an environment of its own (benchmarks/rivals.py makes it) and runs with its
defaults: ``train-doctor profile --json -- python slow.py`` and ``traceml run slow.py``. The
scripts are not edited: in plain loops traceml asks for three lines of its own, without which it
says so; that is counted apart.

Read with more lenience than our own findings: a cause is right when a word of the label stands
anywhere in the text of the tool's first finding (what it saw and what it advises), whatever phase
it names; a line is right when that text holds a line of the script within 3 of the label's.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from benchmarks.rivals import cache_folder, prepare  # noqa: E402

import diagnosed  # noqa: E402 - beside this file
import measure  # noqa: E402

KEPT = HERE / "results" / "rivals"
LIMIT_S = 120
"""A tool that has not ended by then gets a Ctrl-C, after which it may still report."""
GRACE_S = 60


@dataclass(frozen=True)
class Said:
    """What a tool said of a script. first: the text of its first finding, None without one."""

    first: str | None
    """Also None where the tool says that it saw too little."""
    blind: str | None
    """Why it saw nothing, in its own words; None where it saw enough."""
    others: int = 0


def main() -> None:
    """Run what the command line asks for and print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("words", nargs="*", help="parts of names; all cases without any")
    parser.add_argument("--tool", choices=sorted(TOOLS), help="only this one")
    parser.add_argument("--table", action="store_true", help="only print what is known")
    given = parser.parse_args()
    for tool in [given.tool] if given.tool else sorted(TOOLS):
        folder, version = prepare(PACKAGES[tool], cache_folder())
        rows = []
        for case in diagnosed.folders(given.words):
            path = KEPT / tool / f"{case.name}.json"
            if not given.table and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(ask(tool, folder, case)), encoding="utf-8")
            if path.exists():
                rows.append(compared(case, Said(**json.loads(path.read_text())["said"])))
                print(f"{tool:<13} {line(rows[-1])}", flush=True)
        summary(f"{tool} {version}", rows)


def ask(tool: str, folder: Path, case: Path) -> dict[str, Any]:
    """Run a tool on a case, in a folder of its own; return what it said and printed."""
    words = shlex.split(measure.label(case)["command"])
    command, read = TOOLS[tool]
    with tempfile.TemporaryDirectory(prefix="corpus-") as place:
        work = Path(place) / "work"
        work.mkdir()
        shutil.copy(case / "slow.py", work)
        code, out, err = ended(command(folder, Path(place) / "out", words), work)
        said = read(Path(place) / "out", out, err)
    return {"exit": code, "said": vars(said), "out": out[-20000:], "err": err[-4000:]}


def ended(command: list[str], work: Path) -> tuple[int | None, str, str]:
    """Run a command to its end, with a Ctrl-C and then an end by force when it takes too long."""
    environ = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    with subprocess.Popen(
        command,
        cwd=work,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as child:
        for wait, signum in ((LIMIT_S, signal.SIGINT), (GRACE_S, signal.SIGKILL), (None, 0)):
            try:
                out, err = child.communicate(timeout=wait)
                break
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signum)
    return child.returncode, out, err


def _train_doctor(folder: Path, out: Path, words: list[str]) -> list[str]:
    return [str(folder / "train-doctor"), "profile", "--json", "--out", str(out), "--", *words]


def _read_train_doctor(_out: Path, printed: str, err: str) -> Said:
    try:
        told = json.loads(printed)
    except ValueError:
        return Said(None, f"no report: {(err or printed)[-200:]}")
    if told.get("error"):
        return Said(None, json.dumps(told["error"])[:300])
    found = told.get("findings") or []
    if not found:
        return Said(None, None)
    names = ("id", "title", "evidence", "suggestion")
    return Said("\n".join(str(found[0].get(name)) for name in names), None, len(found) - 1)


def _traceml(folder: Path, out: Path, words: list[str]) -> list[str]:
    script = next(i for i, word in enumerate(words) if word.endswith(".py"))
    ranks = next((word.split("=")[1] for word in words if word.startswith("--nproc")), "1")
    more = ["--args", *words[script + 1 :]] if words[script + 1 :] else []
    launch = ["run", "--logs-dir", str(out), "--nproc-per-node", ranks, words[script], *more]
    return [str(folder / "traceml"), *launch]


def _read_traceml(out: Path, printed: str, err: str) -> Said:
    found = next(iter(sorted(out.rglob("final_summary.json"))), None)
    if found is None:
        return Said(None, f"no report: {(err or printed)[-200:]}")
    told = json.loads(found.read_text(encoding="utf-8"))["primary_diagnosis"]
    text = "\n".join(str(told[name]) for name in ("kind", "status", "summary", "action"))
    if "INSUFFICIENT" in told["status"] or "NO DATA" in told["status"]:
        return Said(None, text)
    return Said(None if told["kind"].startswith(("NO_", "BALANCED")) else text, None)


TOOLS = {
    "traceml": (_traceml, _read_traceml),
    "train-doctor": (_train_doctor, _read_train_doctor),
}
PACKAGES = {"traceml": "traceml-ai", "train-doctor": "train-doctor"}


def compared(case: Path, said: Said) -> dict[str, Any]:
    """Return how what was said compares with the label."""
    label = measure.label(case)
    row: dict[str, Any] = {"name": case.name, "healthy": label["healthy"], "said": said}
    causes = [] if label["healthy"] else label.get("causes") or [label]
    row["cause"] = any(named(said, one) for one in causes)
    row["line"] = any(placed(said, one) for one in causes)
    return row


def named(said: Said, cause: dict[str, Any]) -> bool:
    """Tell whether a word of the cause stands in the first finding."""
    text = (said.first or "").lower()
    return any(re.search(word, text) for word in cause["cause_words"])


def placed(said: Said, cause: dict[str, Any]) -> bool:
    """Tell whether the first finding names a line near the cause's."""
    found = re.findall(rf"{re.escape(cause['file'])}\D{{1,9}}(\d+)", said.first or "")
    lines = cause.get("lines") or [cause["line"]]
    return any(abs(int(one) - n) <= diagnosed.NEAR for one in found for n in lines)


def line(row: dict[str, Any]) -> str:
    """Return one line of the table."""
    said = row["said"]
    text = (said.first or "-").splitlines()[0]
    if said.blind:
        return f"{row['name']:<28} saw too little: {' '.join(said.blind.split())[:70]}"
    if row["healthy"]:
        return f"{row['name']:<28} healthy {'CLAIMED ' + text if said.first else 'right'}"
    marks = " ".join(f"{name} {'yes' if row[name] else 'NO '}" for name in ("cause", "line"))
    return f"{row['name']:<28} {marks} {text}"


def summary(name: str, rows: list[dict[str, Any]]) -> None:
    """Print the totals of a tool."""
    slow = [row for row in rows if not row["healthy"]]
    healthy = [row for row in rows if row["healthy"]]
    print(f"\n{name}")
    for title, count, among in (
        ("saw too little", sum(1 for row in rows if row["said"].blind), rows),
        ("first finding names the cause", sum(row["cause"] for row in slow), slow),
        ("first finding names the line", sum(row["line"] for row in slow), slow),
        ("something claimed on a healthy one", sum(1 for r in healthy if r["said"].first), healthy),
    ):
        print(f"  {title:<36} {count} of {len(among)}")
    print()


if __name__ == "__main__":
    main()
