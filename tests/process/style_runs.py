"""Runs training scripts of `tests/scripts`, bare and measured, and keeps what came of each.

Runs are shared by all tests of one worker, and `one_worker` sends the tests of a script to the
same.  A bare run is made with every planted delay at zero: delays change no number of a training,
and a run without them costs its imports only. Where the weights alone are of interest even those
are saved: `Bare` forks from a process that has imported torch.
"""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest

import hotlap
from hotlap.account.summarise import summarise
from hotlap.cli.run import site_folder
from hotlap.launch.environ import child_environ
from hotlap.runs import layout
from hotlap.runs.reading import read_run
from hotlap.runs.store import write_manifest
from hotlap.values.handoff import Handoff
from hotlap.values.record import Process, Record
from hotlap.values.summary import ProcessSummary, RunSummary

SCRIPTS: Final = Path(__file__).resolve().parent.parent / "scripts"
HOTLAP: Final = (sys.executable, "-m", "hotlap", "run", "--quiet")
PATIENCE_S: Final = 240
PACKAGE: Final = "styles_pkg.train"
ALONE: Final = {
    "RANK": "0",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "0",
}
"""Variables by which a script for many ranks is one rank alone."""


@dataclass(frozen=True)
class Result:
    """What one command left. ``log`` is the script's own; None when it wrote none."""

    code: int
    stdout: bytes
    stderr: bytes
    log: dict[str, Any] | None
    folder: Path


@dataclass(frozen=True)
class Measured:
    """A command under ``hotlap run``: what it left, and the record of the run."""

    result: Result
    record: Record
    summary: RunSummary

    @property
    def log(self) -> dict[str, Any]:
        """Return the script's log; without one, say what the script said instead."""
        assert self.result.log is not None, self.result.stderr.decode(errors="replace")[-3000:]
        return self.result.log

    @property
    def process(self) -> Process:
        """Return the process that wrote the log."""
        (found,) = [one for one in self.record.processes if one.pid == self.log["pid"]]
        return found

    @property
    def trainer(self) -> ProcessSummary:
        """Return the account of that process."""
        (found,) = [one for one in self.summary.trainers if one.pid == self.log["pid"]]
        return found


def environ(**more: str) -> dict[str, str]:
    """Return an environment in which scripts reach for no network.

    They write bytecode: the libraries that they import take half as long from then on.
    """
    left = ("HOTLAP", "PYTHONDONTWRITEBYTECODE")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left)}
    return {**kept, "HF_HUB_OFFLINE": "1", **more}


def _given(words: Sequence[str]) -> dict[str, str]:
    return environ(**(ALONE if words[0] == "ddp.py" else {}))


def run(command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None) -> Result:
    """Run a command without input, in ``folder``; the log is ``log.json`` there."""
    done = subprocess.run(
        command,
        # A package can only be started with -m where it lies.
        cwd=SCRIPTS if PACKAGE in command else folder,
        env=environ() if env is None else env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    log = read_log(folder / "log.json") or read_log(folder / "log.json.0")
    return Result(done.returncode, done.stdout, done.stderr, log, folder)


def read_log(path: Path) -> dict[str, Any] | None:
    """Return a script's log, None when there is none."""
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except FileNotFoundError:
        return None
    return found


def python(words: Sequence[str], folder: Path) -> list[str]:
    """Return the command of a script with its arguments; ``words[0]`` is relative to SCRIPTS."""
    name, *rest = words
    target = ["-m", name] if not name.endswith(".py") else [str(SCRIPTS / name)]
    return [sys.executable, *target, "--log", str(folder / "log.json"), *rest]


def through_hotlap(
    command: Sequence[str], folder: Path, env: Mapping[str, str] | None = None
) -> Measured:
    """Run a command measured, its record in ``folder/run``."""
    result = run([*HOTLAP, "-o", str(folder / "run"), *command], folder, env)
    return account_of(result, folder / "run")


def account_of(result: Result, record: Path) -> Measured:
    """Read the record of a run that has ended, or was ended."""
    found = read_run(record)
    return Measured(result, found, summarise(found))


def with_faults(words: Sequence[str], faults: Sequence[str], folder: Path) -> Measured:
    """Run a script in the environment that `hotlap run` makes, its hooks told to fail.

    faults: channels, or ends of channels, as `values.handoff.Handoff` takes them.
    """
    record = folder / "run"
    record.mkdir()
    now = time.monotonic_ns()
    command = python(words, folder)
    write_manifest(record, {"format": 1, "command": command, "spawn_ns": now})
    handoff = Handoff(
        run_dir=str(record),
        package_dir=str(Path(hotlap.__file__).resolve().parent),
        start_dir=str(folder),
        started_ns=now,
        faults=tuple(faults),
    )
    (record / layout.HANDOFF).write_text(handoff.to_json())
    env = child_environ(_given(words), site_folder(), record / layout.HANDOFF)
    return account_of(run(command, folder, env), record)


@functools.cache
def measured(*words: str) -> Measured:
    """Return the measured run of a script with these arguments; one per worker."""
    return again(*words)


def again(*words: str) -> Measured:
    """Run a script measured once more."""
    folder = Path(tempfile.mkdtemp(prefix="style-"))
    return through_hotlap(python(words, folder), folder)


@functools.cache
def _plants(script: str) -> str:
    """Return the option that sets all planted delays of a script to zero."""
    path = SCRIPTS / (script if script.endswith(".py") else script.replace(".", "/") + ".py")
    call = re.search(r"script_log\.arguments\((.*?)\)", path.read_text(), re.DOTALL)
    names = re.findall(r"(\w+)=", call.group(1)) if call else []
    return ",".join(f"{name}=0" for name in names)


def quick(*words: str) -> tuple[str, ...]:
    """Return the words of a script with every planted delay at zero."""
    plants = _plants(words[0])
    return (*words, "--plant", plants) if plants else words


def one_worker(*words: str) -> pytest.MarkDecorator:
    """Send all tests that carry this mark for the same script to one worker."""
    return pytest.mark.xdist_group(" ".join(words))


@functools.cache
def bare(*words: str) -> Result:
    """Return what a script does alone, every planted delay at zero; one run per worker."""
    folder = Path(tempfile.mkdtemp(prefix="bare-"))
    return run(python(quick(*words), folder), folder, _given(words))


class Bare:
    """Bare trainings in forks of one process that has imported torch, for their logs only."""

    def __init__(self) -> None:
        self._logs: dict[tuple[str, ...], dict[str, Any] | None] = {}
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("bare_driver.py"))],
            env=environ(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def log(self, *words: str) -> dict[str, Any] | None:
        """Return the log of a script, every planted delay at zero; None when it wrote none."""
        if words not in self._logs:
            folder = Path(tempfile.mkdtemp(prefix="bare-"))
            name, *rest = quick(*words)
            module = name if not name.endswith(".py") else None
            asked = {
                "folder": str(SCRIPTS if module else folder),
                "words": ["--log", str(folder / "log.json"), *rest],
                "module": module,
                "path": str(SCRIPTS / name),
                "first": str(SCRIPTS),
                "environ": environ(),
            }
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            assert self._process.stdout.readline() == b"done\n"
            self._logs[words] = read_log(folder / "log.json")
        return self._logs[words]

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=PATIENCE_S)
