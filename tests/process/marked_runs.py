"""Runs small scripts, given as text, as trials; marks in the text name its lines."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import hotlap
from hotlap.cli.run import site_folder
from hotlap.launch.environ import child_environ
from hotlap.runs import layout
from hotlap.runs.reading import read_run
from hotlap.runs.store import write_manifest
from hotlap.values.handoff import Handoff
from hotlap.values.record import Process, Record
from hotlap.values.trial import ProfileEntry, TrialPlan
from process.style_runs import PATIENCE_S, environ


@dataclass(frozen=True)
class Done:
    """A script that ran as a trial. lines: where its marks stand."""

    code: int
    out: str
    err: str
    record: Record
    lines: dict[str, int]

    @property
    def process(self) -> Process:
        """Return the process that trained."""
        (found,) = [one for one in self.record.processes if one.role == "trainer"]
        return found

    def spent(self, role: str, key: Callable[[ProfileEntry], object]) -> Counter[object]:
        """Return nanoseconds by what ``key`` tells of an entry."""
        counted: Counter[object] = Counter()
        for one in self.process.profile:
            if one.role == role:
                counted[key(one)] += one.ns
        return counted

    def at(self, mark: str, role: str = "trainer") -> list[ProfileEntry]:
        """Return the entries at, or called from, the line of a mark."""
        line = self.lines[mark]
        return [
            one
            for one in self.process.profile
            if one.role == role
            and any(place.line == line for place in (one.place, *one.callers) if place is not None)
        ]


def run(text: str, *words: str, plan: TrialPlan | None) -> Done:
    """Run a script as a trial, or bare where there is no plan."""
    folder = Path(tempfile.mkdtemp(prefix="sampler-"))
    script = folder / "train.py"
    script.write_text(text)
    command = [sys.executable, str(script), *words]
    record = folder / "run"
    record.mkdir()
    now = time.monotonic_ns()
    write_manifest(record, {"format": 1, "command": command, "spawn_ns": now})
    env = environ()
    if plan is not None:
        handoff = Handoff(
            run_dir=str(record),
            package_dir=str(Path(hotlap.__file__).resolve().parent),
            start_dir=str(folder),
            started_ns=now,
            trial=plan.to_dict(),
        )
        (record / layout.HANDOFF).write_text(handoff.to_json())
        env = child_environ(env, site_folder(), record / layout.HANDOFF)
    done = subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    marks = {
        line.rpartition("# ")[2]: number
        for number, line in enumerate(text.splitlines(), start=1)
        if "# " in line
    }
    return Done(done.returncode, done.stdout, done.stderr, read_run(record), marks)
