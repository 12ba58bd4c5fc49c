"""What a loader worker itself clocks for each batch, appended to one file per process."""

from __future__ import annotations

import json
import os
import threading
import time
from typing import Any


class RunQueue:
    """Reads how long the calling thread has waited for a core so far."""

    def __init__(self) -> None:
        self.owner: tuple[int, int] | None = None
        self.fd = -1

    def read_ns(self) -> int | None:
        """Return the wait in nanoseconds, or None where the kernel does not tell."""
        owner = (os.getpid(), threading.get_ident())
        try:
            if owner != self.owner:
                self.fd, self.owner = os.open("/proc/thread-self/schedstat", os.O_RDONLY), owner
            return int(os.pread(self.fd, 64, 0).split()[1])
        except (OSError, IndexError, ValueError):
            return None


run_queue = RunQueue()


class WorkerView:
    """Clocks of the thread that prepares batches: wall, its own CPU, its wait for a core.

    A data set calls `item()` first thing in `__getitem__`, which opens a batch at its first item;
    the collate function calls `collating()` first and `batch_done()` last. Each batch is one line
    of `FOLDER/worker-PID.jsonl`; with no folder nothing is written.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = folder and os.path.abspath(folder)
        self.open: dict[str, tuple[int, int, int | None]] = {}

    def _now(self) -> tuple[int, int, int | None]:
        # Read again if the thread lost its core in between: the three must be of one instant.
        for _ in range(5):
            before = run_queue.read_ns()
            wall, cpu = time.perf_counter_ns(), time.thread_time_ns()
            if run_queue.read_ns() == before:
                break
        return wall, cpu, before

    def item(self) -> None:
        if "items" not in self.open:
            self.open["items"] = self._now()

    def collating(self) -> None:
        self.open["collate"] = self._now()

    def batch_done(self, **facts: Any) -> None:
        end = self._now()
        edges = [self.open["items"], self.open["collate"], end]
        self.open = {}
        line: dict[str, Any] = {"pid": os.getpid(), "begin_ns": edges[0][0], "end_ns": end[0]}
        parts = {"items": edges[:2], "collate": edges[1:], "batch": [edges[0], end]}
        for name, (a, b) in parts.items():
            line[name] = _difference(a, b)
        self.write({**line, **facts})

    def write(self, line: dict[str, Any]) -> None:
        """Append one line to this process's file."""
        if self.folder is None:
            return
        os.makedirs(self.folder, exist_ok=True)
        path = os.path.join(self.folder, f"worker-{os.getpid()}.jsonl")
        with open(path, "a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def _difference(a: tuple[int, int, int | None], b: tuple[int, int, int | None]) -> dict[str, Any]:
    wall, cpu = b[0] - a[0], b[1] - a[1]
    queue = None if a[2] is None or b[2] is None else b[2] - a[2]
    blocked = None if queue is None else wall - cpu - queue
    return {"wall_ns": wall, "cpu_ns": cpu, "runqueue_ns": queue, "blocked_ns": blocked}
