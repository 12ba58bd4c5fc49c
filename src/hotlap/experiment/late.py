"""When a trial that does not end has to be ended from outside."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hotlap.experiment.trials import CONDITIONS
from hotlap.runs.reading import read_run

_LOOK_S: Final = 2.0


class Late:
    """Tells when a trial is not going to end by itself: long after its clean stop was due, or
    when what was to bring it about has failed inside.

    seconds: how long after its first step the windows take. also: called once there are steps.
    """

    def __init__(self, seconds: float, also: Callable[[Path], None] | None = None) -> None:
        self._also = also
        self._allowed_s = 2 * seconds + 60.0
        self._first_s: float | None = None
        self._next_s = 0.0
        self._has_failed = False

    def is_over(self, folder: Path) -> bool:
        """Look at the record now and then, and at the clock."""
        now_s = time.monotonic()
        if now_s >= self._next_s:
            self._look(folder)
            # Reading costs the training time: at most a fiftieth.
            self._next_s = now_s + max(_LOOK_S, 50 * (time.monotonic() - now_s))
        if self._also is not None and self._first_s is not None:
            self._also(folder)
        late = self._first_s is not None and now_s - self._first_s > self._allowed_s
        return late or self._has_failed

    def _look(self, folder: Path) -> None:
        processes = read_run(folder).processes
        firsts = [one.first_step_ns / 1e9 for one in processes if one.first_step_ns]
        self._first_s = min(firsts, default=None)
        faults = [fault.site for one in processes if one.ticks for fault in one.faults]
        self._has_failed = CONDITIONS in faults
