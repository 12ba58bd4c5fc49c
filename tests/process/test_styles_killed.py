"""A run that is killed at any moment leaves a record that can be read, and that claims no more
than was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from hotlap.account.summarise import summarise
from hotlap.report.whole import whole
from hotlap.runs.reading import read_run
from hotlap.values.record import Record
from process.style_runs import HOTLAP, SCRIPTS, environ

pytestmark = pytest.mark.slow

STEPS = 180
MOMENTS = 6
LONGEST_S = 9.0
"""By then the script has certainly begun to train; it may also have ended."""


def killed(after_s: float, everyone: bool) -> Path:
    """Run a script, kill it, and return its record. everyone: hotlap as well."""
    folder = Path(tempfile.mkdtemp(prefix="killed-"))
    record = folder / "run"
    child = subprocess.Popen(
        [*HOTLAP, "-o", str(record), sys.executable, str(SCRIPTS / "plain_workers.py")],
        cwd=folder,
        env=environ(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    begin = time.monotonic()
    while not (record / "run.json").exists() and child.poll() is None:
        time.sleep(0.01)
    time.sleep(max(0.0, after_s - (time.monotonic() - begin)))
    if everyone:
        os.killpg(child.pid, signal.SIGKILL)
        assert child.wait() in (-signal.SIGKILL, 0)
        return record
    for pid in trainers_below(child.pid):
        os.kill(pid, signal.SIGKILL)
    assert child.wait(timeout=120) in (-signal.SIGKILL, 0)
    return record


def trainers_below(pid: int) -> list[int]:
    """Return the direct children of a process."""
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


@pytest.fixture(scope="module")
def records() -> Iterator[list[Future[Path]]]:
    """Return the records of a script that was killed at several moments, two at a time."""
    with ThreadPoolExecutor(2) as pool:
        yield [
            pool.submit(killed, LONGEST_S * (at + 0.5) / MOMENTS, everyone=at % 2 == 0)
            for at in range(MOMENTS)
        ]


@pytest.mark.parametrize("at", range(MOMENTS))
def test_killed_at_any_moment(records: list[Future[Path]], at: int) -> None:
    record = read_run(records[at].result())
    summary = summarise(record)
    assert whole(summary)
    assert record.exit_code in (None, 0, -signal.SIGKILL)
    for process in record.processes:
        assert_plausible(record, process.pid)
    assert all("frame" in words or "torn" in words or "tail" in words for words in record.damage)
    for trainer in summary.trainers:
        assert 0 <= trainer.step.steps <= STEPS
        known = [part.ns for part in trainer.phases.values() if part.ns is not None]
        assert all(ns >= 0 for ns in known)
        if summary.wall_ns is not None:
            assert sum(known) <= summary.wall_ns


def assert_plausible(record: Record, pid: int) -> None:
    """Windows are in order, their accounts are their wall time, ticks are all there."""
    for process in record.processes:
        if process.pid != pid:
            continue
        at = process.first_step_ns or 0
        for window in process.windows:
            assert window.begin_ns >= at
            assert sum(window.accounts) == window.end_ns - window.begin_ns
            at = window.end_ns
        assert [tick.number for tick in process.ticks] == list(range(1, len(process.ticks) + 1))
        assert sum(window.ticks for window in process.windows) <= len(process.ticks)


def test_some_were_killed_while_they_trained(records: list[Future[Path]]) -> None:
    runs = [read_run(one.result()) for one in records]
    steps = [max((len(p.ticks) for p in run.processes), default=0) for run in runs]
    assert any(0 < count < STEPS for count in steps), steps
