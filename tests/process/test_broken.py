"""Scripts that end badly, or do odd things to their process, end just as they would alone.

stdout and stderr byte for byte (tracebacks too), exit code or signal, the files and the result.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hotlap.launch.absence import explain
from process.style_runs import (
    HOTLAP,
    PATIENCE_S,
    SCRIPTS,
    Measured,
    Result,
    account_of,
    environ,
    one_worker,
    read_log,
    run,
    through_hotlap,
)

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    """A script of `scripts/broken` with its words; steps and exit code that it must have."""

    words: tuple[str, ...]
    steps: int | None
    code: int
    python: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "_".join(word.removesuffix(".py").strip("-") for word in self.words)

    def command(self, folder: Path) -> list[str]:
        """Return the whole command; log and files go to the folder."""
        name, *rest = self.words
        target = [sys.executable, *self.python, str(SCRIPTS / "broken" / name)]
        if name in ("syntax_error.py", "missing.py"):
            return target
        return [*target, "--log", str(folder / "log.json"), "--out", str(folder / "out"), *rest]


CASES = (
    Case(("missing.py",), None, 2),
    Case(("syntax_error.py",), None, 1),
    Case(("raises_at_7.py",), 6, 1),
    Case(("exits_3.py",), 5, 3),
    Case(("kill_self.py",), None, -signal.SIGKILL),
    Case(("binary_output.py",), 20, 0),
    Case(("bare_except.py",), 17, 0),
    Case(("closes_stderr.py",), 20, 0),
    Case(("closes_stderr.py", "--how", "descriptor"), 20, 0),
    Case(("os_exit.py", "--code", "4"), None, 4),
    Case(("daemon_threads.py",), 60, 0),
    Case(("redirects_stdout.py",), 20, 0),
    Case(("replaces_stdout.py",), 20, 0),
    Case(("forks_midway.py",), 20, 0),
    Case(("forks_midway.py", "--child", "soft"), 20, 0),
    Case(("warnings_error.py",), 40, 0, ("-W", "error")),
    Case(("raises_inside.py",), 20, 1),
    Case(("raises_inside.py", "--workers", "1"), 20, 1),
)

each_case = pytest.mark.parametrize(
    "case", [pytest.param(one, marks=one_worker(*one.words), id=str(one)) for one in CASES]
)


@functools.cache
def pair(case: Case) -> tuple[Result, Measured]:
    """Return the bare and the measured run of a case; one pair per worker."""
    with ThreadPoolExecutor(2) as pool:
        alone, ours = pool.submit(_alone, case), pool.submit(_measured, case)
        return alone.result(), ours.result()


def _alone(case: Case) -> Result:
    folder = Path(tempfile.mkdtemp(prefix="broken-"))
    return run(case.command(folder), folder)


def _measured(case: Case) -> Measured:
    folder = Path(tempfile.mkdtemp(prefix="broken-"))
    return through_hotlap(case.command(folder), folder)


def files(folder: Path) -> dict[str, str]:
    """Return the digest of every file that the training left."""
    out = folder / "out"
    return {
        str(path.relative_to(out)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(out.rglob("*"))
        if path.is_file()
    }


def without_clock(log: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return a log without what differs between any two runs."""
    if log is None:
        return None
    timed = ("steps", "run", "pid", "optimizer_ends", "side_forwards")
    kept = {name: value for name, value in log.items() if name not in timed}
    if kept.get("file_number", 0) > 2:
        kept["file_number"] = 3
    return {**kept, "steps": len(log["steps"])}


def without_number(text: bytes) -> bytes:
    """Return what was printed without the number of a file that was opened above the standard
    ones: we keep two files open ourselves."""
    return re.sub(rb"(?<=^file )[3-9](?=, intact)", b"3", text)


@each_case
def test_ends_as_it_would_alone(case: Case) -> None:
    alone, found = pair(case)
    ours = found.result
    assert ours.code == alone.code == case.code
    assert without_number(ours.stdout) == without_number(alone.stdout)
    assert ours.stderr == alone.stderr
    assert files(ours.folder) == files(alone.folder)
    assert without_clock(ours.log) == without_clock(alone.log)


@each_case
def test_leaves_a_record_that_can_be_read(case: Case) -> None:
    _, ours = pair(case)
    assert ours.record.exit_code == case.code
    assert ours.record.damage == ()
    assert ours.summary.faults == ()
    if case.words[0] in ("missing.py", "syntax_error.py"):
        assert ours.summary.trainers == ()
        assert explain(ours.record, case.code)
    elif case.steps is not None:
        assert ours.trainer.step.steps == case.steps == len(ours.log["steps"])
    pid = ours.log["pid"] if ours.result.log else None
    # A forked child that steps once itself is told apart from the training that it left.
    others = [one for one in ours.summary.trainers if one.pid != pid]
    assert [one.step.steps for one in others] == ([1] if "forks" in str(case) else [])


@each_case
def test_steps_that_were_lost_are_few_and_never_too_many(case: Case) -> None:
    _, ours = pair(case)
    log = ours.result.log or {"pid": None, "steps": []}
    seen = [one.step.steps for one in ours.summary.trainers if one.pid == log["pid"]]
    assert sum(seen) <= len(log["steps"])


def interrupted(how: Sequence[str], *words: str) -> Result:
    """Start the script that trains until Ctrl-C, and send it as a terminal does: to the group."""
    folder = Path(tempfile.mkdtemp(prefix="interrupt-"))
    log = folder / "log.json"
    script = str(SCRIPTS / "broken" / "interrupt.py")
    through = [*how, "-o", str(folder / "run")] if how else []
    child = subprocess.Popen(
        [*through, sys.executable, script, "--log", str(log), *words],
        cwd=folder,
        env=environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert child.stdout is not None
    first = child.stdout.readline()
    os.killpg(child.pid, signal.SIGINT)
    out, err = child.communicate(timeout=PATIENCE_S)
    return Result(child.returncode, first + out, err, read_log(log), folder)


@pytest.mark.parametrize(("words", "code"), [((), -signal.SIGINT), (("--code", "6"), 6)])
def test_ctrl_c(words: tuple[str, ...], code: int) -> None:
    alone, ours = interrupted((), *words), interrupted(HOTLAP, *words)
    for _ in range(2):
        if b"hotlap" in ours.stderr:
            # It struck while a hook of ours ran: then that is where the script was interrupted.
            ours = interrupted(HOTLAP, *words)
    assert ours.code == alone.code == code
    assert ours.stdout == alone.stdout == b"READY\ninterrupted: saving\n"
    assert ours.log is not None
    assert ours.log["cleaned_up"]
    # Where Ctrl-C strikes differs from run to run; whose frames are shown must not.
    assert ours.stderr.splitlines()[-1:] == alone.stderr.splitlines()[-1:]
    assert b"hotlap" not in ours.stderr
    run = account_of(ours, ours.folder / "run")
    assert run.record.exit_code == code
    # One more where it struck after the optimizer's step and before the script's own line for it.
    assert run.trainer.step.steps - len(ours.log["steps"]) in (0, 1)
