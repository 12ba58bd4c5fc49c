"""One process appends frames to its own file. Standard library only; never raises; no open file.

Each flush opens, writes and closes: a script that closes every descriptor, forks, or changes
directory loses nothing, and the training process holds no descriptor of ours between flushes.
"""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter_ns
from typing import Final

from hotlap.runs import frames

_FLAGS: Final = os.O_WRONLY | os.O_APPEND | os.O_CREAT | getattr(os, "O_CLOEXEC", 0)


class Recording:
    """An append-only file of frames.

    After the first failed write (full or read-only disk) it gives up for good: a run may lose
    its record, a training must not lose time to a broken disk.

    path: the file; its folder is made at the first flush, mode 0700.
    kind: what the header says the file holds.
    limit_bytes: nothing is appended beyond this size.
    """

    def __init__(self, path: Path, kind: str, limit_bytes: int = 256 << 20) -> None:
        self.path = path
        self.lost: str | None = None
        self.slowest_ns = 0
        self._kind = kind
        self._limit = limit_bytes
        self._pending: list[bytes] = []

    def add(self, frame: bytes) -> None:
        """Keep an encoded frame until the next flush."""
        self._pending.append(frame)

    def flush(self) -> bool:
        """Append what is pending in one write; return whether it is on its way to the disk."""
        if not self._pending or self.lost is not None:
            self._pending.clear()
            return self.lost is None
        begin = perf_counter_ns()
        try:
            self._append(b"".join(self._pending))
        except OSError as error:
            self.lost = f"{type(error).__name__}: {error}"
        self._pending.clear()
        self.slowest_ns = max(self.slowest_ns, perf_counter_ns() - begin)
        return self.lost is None

    def _append(self, data: bytes) -> None:
        try:
            handle = os.open(self.path, _FLAGS, 0o600)
        except FileNotFoundError:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            handle = os.open(self.path, _FLAGS, 0o600)
        try:
            size = os.fstat(handle).st_size
            if size == 0:
                data = frames.header(self._kind) + data
            if size + len(data) > self._limit:
                raise OSError(f"{self.path} has reached its limit of {self._limit} bytes")
            written = os.write(handle, data)
            if written != len(data):
                raise OSError(f"only {written} of {len(data)} bytes could be written")
        finally:
            os.close(handle)
