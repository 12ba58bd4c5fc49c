"""The names of files and folders inside a run directory; nobody else writes them down."""

from __future__ import annotations

from pathlib import Path
from typing import Final

MANIFEST: Final = "run.json"
HANDOFF: Final = "handoff.json"
REPORT: Final = "report.txt"
SEEN: Final = "seen.jsonl"
PROCESSES: Final = "proc"
PROCESS_FILE: Final = "self.rec"
WORKER_PREFIX: Final = "worker-"
SUFFIX: Final = ".rec"
PROFILE_FILE: Final = "profile.rec"
MACHINE_FILE: Final = "machine.rec"


def process_folder(run: Path, host: str, rank: int | None, pid: int, start_ns: int) -> Path:
    """Return the folder of one process: ``HOST-RANK-PID-START`` (rank ``x`` when unknown)."""
    place = "x" if rank is None else str(rank)
    return run / PROCESSES / f"{plain(host)}-{place}-{pid}-{start_ns}"


def folders_of_pid(run: Path, host: str, pid: int) -> list[Path]:
    """Return the folders that process ``pid`` of ``host`` made, newest last."""
    found = (run / PROCESSES).glob(f"{plain(host)}-*-{pid}-*")
    return sorted(found, key=lambda folder: folder.name.rsplit("-", 1)[-1].zfill(20))


def worker_file(folder: Path, dataset: str, worker: int) -> Path:
    """Return the file that workers with this id append to, epoch after epoch."""
    return folder / f"{WORKER_PREFIX}{plain(dataset)}-{worker}{SUFFIX}"


def plain(name: str) -> str:
    """Return ``name`` reduced to letters, digits and underscores, at most 48 of them."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)[:48] or "_"


def agreement_file(run: Path, launcher: int, what: str) -> Path:
    """Return the file in which rank 0 says when something ends, to the ranks beside it.

    launcher: process id of what started the ranks.
    """
    return run / f"agreed-{launcher}-{plain(what)}"
