"""Runs training scripts of `tests/scripts` as trials: with a plan in their handoff."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hotlap
from hotlap.cli.run import site_folder
from hotlap.launch.environ import child_environ
from hotlap.runs import layout
from hotlap.runs.reading import read_run
from hotlap.runs.store import write_manifest
from hotlap.values.handoff import Handoff
from hotlap.values.record import Process, Record
from hotlap.values.trial import TrialPlan, WindowPlan, WindowResult
from process.style_runs import Result, environ, python, run


@dataclass(frozen=True)
class Trial:
    """What a trial left."""

    result: Result
    record: Record

    @property
    def log(self) -> dict[str, Any]:
        """Return the script's log; without one, say what the script said instead."""
        assert self.result.log is not None, self.result.stderr.decode(errors="replace")[-3000:]
        return self.result.log

    @property
    def trainer(self) -> Process:
        """Return the process that trained."""
        assert len(self.trainers) == 1, self.result.stderr.decode(errors="replace")[-3000:]
        return self.trainers[0]

    @property
    def trainers(self) -> list[Process]:
        """Return the processes that trained, by rank."""
        found = [one for one in self.record.processes if one.ticks]
        return sorted(found, key=lambda one: one.rank or 0)

    @property
    def windows(self) -> tuple[WindowResult, ...]:
        """Return what its windows measured."""
        return self.trainer.windows_measured

    def batches(self, view: str) -> list[dict[str, Any]]:
        """Return the batches as their makers clocked them in a folder, in order of time."""
        lines: list[dict[str, Any]] = []
        for path in Path(view).glob("batches-*.jsonl"):
            lines += [json.loads(line) for line in path.read_text().splitlines()]
        return sorted(lines, key=lambda line: line["end_ns"])


def window(kind: str, steps: int, seconds: float = 60.0, workers: int | None = None) -> WindowPlan:
    """Make a plan of one window."""
    return WindowPlan(kind, steps, seconds, workers)


def trial(
    words: Sequence[str],
    *windows: WindowPlan,
    env: Mapping[str, str] | None = None,
    command: Callable[[Path], Sequence[str]] | None = None,
    **plan: Any,
) -> Trial:
    """Run a script of `tests/scripts` with a plan, and read what it left.

    words: the script and its arguments. command: makes the whole command in place of these, from
    the folder in which it runs.
    """
    folder = Path(tempfile.mkdtemp(prefix="trial-"))
    record = folder / "run"
    record.mkdir()
    now = time.monotonic_ns()
    started = list(command(folder)) if command is not None else python(words, folder)
    write_manifest(record, {"format": 1, "command": started, "spawn_ns": now})
    handoff = Handoff(
        run_dir=str(record),
        package_dir=str(Path(hotlap.__file__).resolve().parent),
        start_dir=str(folder),
        started_ns=now,
        trial=TrialPlan(windows=tuple(windows), **plan).to_dict(),
    )
    (record / layout.HANDOFF).write_text(handoff.to_json())
    around = child_environ(environ(**(env or {})), site_folder(), record / layout.HANDOFF)
    result = run(started, folder, around)
    return Trial(result, read_run(record))
