"""What the kernel counts of a thread of this process: time on a core, and time waited for one."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from typing import Final

_SLIGHT_NS: Final = 100_000
_SLIGHT_PART: Final = 50
"""A thread that was off its core for less than this, or than one part in so many, worked."""


def cpu_clock(native: int) -> int:
    """Return the kernel's number of a thread's CPU clock, for ``time.clock_gettime_ns``."""
    # Linux makes it of the thread's number; 6 is "of one thread, scheduled time".
    return ((~native) << 3) | 6


class ThreadClocks:
    """The kernel's counters of any thread of this process, between two looks at it.

    Reading the wait for a core is a system call, at which this thread gives the interpreter away
    and has to wait for it again. So it is not read where there is no time that it could explain.
    """

    def __init__(self, native: int) -> None:
        self._clock = cpu_clock(native)
        self._path = f"/proc/self/task/{native}/schedstat"
        self._file: int | None = None
        self._identity: tuple[int, int] = (0, 0)
        self._cpu: int | None = None
        self._waited = 0
        self._owed = 0

    def since(self, wall_ns: int) -> tuple[int, int] | None:
        """Return time on a core and time waited for one of the last ``wall_ns``, None at first."""
        try:
            cpu = time.clock_gettime_ns(self._clock)
            if self._cpu is None:
                self._waited, self._cpu = self._queue(), cpu
                return None
            spent = min(wall_ns, cpu - self._cpu)
            self._cpu = cpu
            gap = wall_ns - spent
            if gap <= max(_SLIGHT_NS, wall_ns // _SLIGHT_PART):
                self._owed += gap  # if it was waiting, it is not to be counted at a later look
                return wall_ns, 0
            waited = self._queue()
            queue, self._waited = waited - self._waited - self._owed, waited
            self._owed = 0
        except (OSError, ValueError, IndexError, AttributeError):
            self.close()
            self._cpu = None
            return None
        return spent, min(gap, max(0, queue))

    def _queue(self) -> int:
        if self._file is None:
            self._file = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            found = os.fstat(self._file)
            self._identity = found.st_dev, found.st_ino
        _, waited, _ = os.pread(self._file, 96, 0).split()
        return int(waited)

    def close(self) -> None:
        """Give the descriptor back, unless a script that closes all of them has already."""
        file, self._file = self._file, None
        if file is None:
            return
        with contextlib.suppress(OSError):
            found = os.fstat(file)
            if (found.st_dev, found.st_ino) == self._identity:
                os.close(file)


def native_id_of(ident: int) -> int | None:
    """Return the kernel's number of a thread, None where it is not known or not Linux."""
    if not sys.platform.startswith("linux"):
        return None
    if ident == threading.main_thread().ident:
        return os.getpid()
    for one in threading.enumerate():
        if one.ident == ident:
            return one.native_id
    return None
