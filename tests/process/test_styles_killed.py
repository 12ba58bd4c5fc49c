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
MOMENTS = ((0.5, 0), (2.5, 0), (0.0, 1), (0.0, 1), (1.0, 20), (0.7, 60))
"""Seconds to wait, and steps that must be in the record before that wait begins. Without steps
that is somewhere in the start; with them, while it trains, on a machine of any speed."""


def killed(after_s: float, after_steps: int, everyone: bool) -> Path:
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
    while not (record / "run.json").exists() and child.poll() is None:
        time.sleep(0.01)
    while steps_in(record) < after_steps and child.poll() is None:
        time.sleep(0.1)
    time.sleep(after_s)
    if everyone:
        os.killpg(child.pid, signal.SIGKILL)
        assert child.wait() in (-signal.SIGKILL, 0)
        return record
    for pid in trainers_below(child.pid):
        os.kill(pid, signal.SIGKILL)
    assert child.wait(timeout=120) in (-signal.SIGKILL, 0)
    return record


def steps_in(record: Path) -> int:
    """Return how many steps a record holds by now; 0 where there is none yet."""
    return ticks_of(read_run(record)) if (record / "run.json").exists() else 0


def ticks_of(run: Record) -> int:
    """Return the steps of the process that has most of them."""
    return max((len(process.ticks) for process in run.processes), default=0)


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
            pool.submit(killed, after_s, after_steps, everyone=at % 2 == 0)
            for at, (after_s, after_steps) in enumerate(MOMENTS)
        ]


@pytest.mark.parametrize("at", range(len(MOMENTS)))
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
    steps = [ticks_of(run) for run in runs]
    assert any(0 < count < STEPS for count in steps), steps
