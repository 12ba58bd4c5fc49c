"""The clean end of a trial: an exit with code 0, raised where a step has ended.

``except Exception`` lets it pass, ``finally`` blocks and atexit handlers of the script run, no
traceback is printed, and a launcher of ranks sees a process that ended well. A bare ``except``
swallows it: then it is raised again at the hooks that follow, and at last the process is left
at once, its record complete.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from typing import Final

GRACE_S: Final = 10.0
PATIENCE: Final = 3
"""Hooks at which it is raised again before the process is left."""


class TrialEnded(SystemExit):
    """The trial has measured what it was to measure."""

    def __init__(self) -> None:
        super().__init__(0)


class Stop:
    """Ends the process once it is ``wanted``.

    leave: called before the process is left at once; completes the record.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        self.wanted = False
        self._leave = leave
        self._first = 0.0
        self._raised = 0

    def at_hook(self) -> None:
        """Raise TrialEnded; where that was swallowed again and again, leave the process."""
        now = time.monotonic()
        if not self._raised:
            self._first = now
        self._raised += 1
        if self._raised > 1 + PATIENCE or now - self._first > GRACE_S:
            self._leave_now()
        raise TrialEnded

    def _leave_now(self) -> None:
        with contextlib.suppress(Exception):
            self._leave()
        for child in multiprocessing.active_children():
            with contextlib.suppress(Exception):
                child.terminate()
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(Exception):
                stream.flush()
        os._exit(0)
