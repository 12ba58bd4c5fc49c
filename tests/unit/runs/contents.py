"""Run directories written by hand, frame by frame."""

from __future__ import annotations

from pathlib import Path

from hotlap.runs.frames import encode_json, encode_rows, header
from hotlap.runs.reading import read_run
from hotlap.runs.store import write_manifest
from hotlap.values.phase import ACCOUNTS
from hotlap.values.record import Process

WIDTH = len(ACCOUNTS)
COLUMNS = (
    *("number", "end_ns", "rule", "ordinal"),
    *ACCOUNTS,
    *("batches", "forwards", "backwards", "cpu_ns", "epoch_first"),
)
HELLO = {
    "host": "node1",
    "pid": 7,
    "rank": None,
    "local_rank": None,
    "world_size": None,
    "argv": ["python", "train.py"],
    "python": "3.11.7",
    "start_ns": 100,
}
WINDOW = {
    "first_tick": 1,
    "ticks": 2,
    "steps": 2,
    "begin_ns": 1000,
    "end_ns": 3000,
    "rule": "optimizer",
    "by_optimizer": {"0": 2},
    "histogram": {"100": 2},
    "accounts": [10] * WIDTH,
    "batches": 2,
    "forwards": 2,
    "backwards": 2,
    "cpu_ns": 1500,
}
LOADER = {
    "ordinal": 0,
    "dataset": "Photos",
    "place": {"file": "train.py", "line": 3, "function": "main"},
    "batch_size": 8,
    "workers": 2,
    "length": 10,
    "iterable": False,
    "pin_memory": False,
    "prefetch": 2,
    "persistent": False,
    "role": "training",
    "base_seeds": [5],
}
FETCHES = {
    "loader": None,
    "worker": 0,
    "batches": 1,
    "samples": 8,
    "wall_ns": 100,
    "cpu_ns": 50,
    "runqueue_ns": 20,
    "blocked_ns": 30,
    "collate_ns": 10,
    "collate_cpu_ns": 8,
    "collate_runqueue_ns": 1,
    "ipc_ns": 4,
    "asked_bytes": 10,
    "disk_bytes": 0,
    "slowest_ns": 100,
    "begin_ns": 1000,
    "end_ns": 1100,
    "base_seed": 5,
    "dataset": "Photos",
}
TOUCH = {"family": "sync", "kind": "item", "place": None, "count": 3, "ns": 30, "size_bytes": None}


def row(number: int, end_ns: int = 0, rule: int = 3, ns: int = 1) -> tuple[int, ...]:
    return (number, end_ns or number * 1000, rule, 0, *[ns] * WIDTH, 1, 1, 1, 500, 0)


def ticks(*numbers: int, ns: int = 1) -> bytes:
    return encode_rows("tick", COLUMNS, [row(number, ns=ns) for number in numbers])


class Run:
    """A run directory that a test fills."""

    def __init__(self, path: Path) -> None:
        self.path = path
        write_manifest(path, {"format": 1, "id": path.name, "spawn_ns": 1})

    def process(self, *parts: bytes, name: str = "node1-x-7-100", file: str = "self.rec") -> Path:
        """Write the file of a process, hello included where it is the process's own."""
        path = self.path / "proc" / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        first = [encode_json("helo", HELLO)] if file == "self.rec" else []
        path.write_bytes(b"".join((header("process"), *first, *parts)))
        return path

    def only(self) -> Process:
        (process,) = read_run(self.path).processes
        return process

    def damage(self) -> tuple[str, ...]:
        return read_run(self.path).damage
