"""The flush once a second, the size of a record, and the time to read it.

The journal is driven directly, by a clock of its own: ticks of 10 ms with some spread, so a
million of them stand for a run of nearly three hours and ten million for one of more than a day.
What is written is the real file; what is read is read by ``hotlap report``'s own functions.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.surroundings import keep, table
from hotlap.account.summarise import summarise
from hotlap.probe.hello import hello
from hotlap.probe.journal import Journal
from hotlap.probe.ledger import WIDTH
from hotlap.runs import frames, layout
from hotlap.runs.reading import read_run
from hotlap.runs.recording import Recording

STEP_NS = 10_000_000
START_NS = 1_000_000_000_000


@dataclass(frozen=True)
class Result:
    """One simulated run. flush_us: median and slowest of the flushes, thread CPU time."""

    steps: int
    hours: float
    size_bytes: int
    flushes: int
    flush_us: float
    slowest_flush_us: float
    flush_us_per_step: float
    read_ms: float
    summarise_ms: float


def _manifest(run: Path, end_ns: int) -> None:
    content: dict[str, Any] = {
        "format": 1,
        "id": run.name,
        "command": ["python", "train.py"],
        "cwd": str(run),
        "host": "simulated",
        "hotlap_version": "0",
        "started": "2026-01-01T00:00:00+00:00",
        "spawn_ns": START_NS - 2_000_000_000,
        "exit_ns": end_ns,
        "exit_code": 0,
    }
    (run / layout.MANIFEST).write_text(json.dumps(content))


def measure(steps: int) -> Result:
    """Drive a journal through so many ticks and read the run back."""
    with tempfile.TemporaryDirectory(prefix="hotlap-bench-") as name:
        run = Path(name)
        folder = layout.process_folder(run, "simulated", None, 1, START_NS)
        recording = Recording(folder / layout.PROCESS_FILE, "process")
        recording.add(frames.encode_json("helo", hello(START_NS - 2_000_000_000)))
        taken, end_ns = _drive(steps, recording)
        _manifest(run, end_ns)
        size = sum(path.stat().st_size for path in folder.iterdir())
        begun = time.perf_counter()
        record = read_run(run)
        read = time.perf_counter()
        summarise(record)
        done = time.perf_counter()
        if sum(window.ticks for window in record.processes[0].windows) != steps:
            raise RuntimeError(f"{steps} ticks were written, others were read")
    return Result(
        steps=steps,
        hours=steps * STEP_NS / 3.6e12,
        size_bytes=size,
        flushes=len(taken),
        flush_us=median(taken) / 1000,
        slowest_flush_us=max(taken) / 1000,
        flush_us_per_step=sum(taken) / 1000 / steps,
        read_ms=(read - begun) * 1000,
        summarise_ms=(done - read) * 1000,
    )


def _drive(steps: int, recording: Recording) -> tuple[list[int], int]:
    """Tick and flush on a simulated clock; return the flushes' CPU time in ns and the end."""
    chance = random.Random(0)
    now = START_NS
    journal = Journal(recording)
    journal.begun_ns = now
    taken: list[int] = []
    flush = journal.flush

    def timed(now: int) -> None:
        begun = time.thread_time_ns()
        flush(now)
        taken.append(time.thread_time_ns() - begun)

    journal.flush = timed  # type: ignore[method-assign]  # counted, not changed
    accounts = [0] * WIDTH
    shares = (0.2, 0, 0.25, 0.35, 0.1, 0, 0.02, 0.08)
    journal.first_step(now, accounts, 0)
    for number in range(steps):
        # One step in a thousand is odd: excerpts are written, as many as they may be.
        step = STEP_NS * (8 if chance.random() < 0.001 else chance.uniform(0.9, 1.1))
        for index, share in enumerate(shares):
            accounts[index] += int(step * share)
        now += int(step)
        cpu = int((now - START_NS) * 0.9)
        journal.tick((now, 3, 0, tuple(accounts), [1, 1, 1], cpu, number % 1000 == 0))
    journal.close(now, [0] * WIDTH)
    return taken, now


def run(quick: bool) -> bool:
    """Measure runs of several lengths, print and keep; return whether the size is bounded."""
    lengths = (1_000, 100_000) if quick else (1_000, 100_000, 1_000_000)
    results = [measure(steps) for steps in lengths]
    rows = [
        [
            f"{one.steps:,}",
            f"{one.hours:.2f}",
            f"{one.size_bytes / 1024:,.0f}",
            f"{one.flush_us:.0f}",
            f"{one.slowest_flush_us:.0f}",
            f"{one.flush_us_per_step:.2f}",
            f"{one.read_ms:.0f}",
            f"{one.summarise_ms:.0f}",
        ]
        for one in results
    ]
    head = ["steps of 10 ms", "hours", "KiB", "flush, us", "slowest", "per step", "read, ms"]
    table("Record: its size, the flush once a second, reading it", [*head, "summarise, ms"], rows)
    keep("size", {"runs": [asdict(one) for one in results]})
    return results[-1].size_bytes < 16 << 20
