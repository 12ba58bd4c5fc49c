"""The training loaders end their epoch before its time, once: what comes then can be seen.

Of a run whose epochs take hours, a diagnosis of minutes sees steps only. What the script does at
the end of an epoch (evaluation, checkpoint, new workers) it does after a short one as well.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any


class Cut:
    """Ends the epoch that runs. A loader that is asked for a new iterator begins a whole one."""

    def __init__(self) -> None:
        self._is_cutting = False
        self._over_s: float | None = None
        self.has_cut = False

    def begin(self, seconds: float) -> None:
        """End the epoch at the next batch. seconds: how long what follows may take."""
        self._is_cutting = True
        self._over_s = time.monotonic() + seconds

    def end(self) -> None:
        """Let epochs be as long as they are."""
        self._is_cutting = False
        self._over_s = None

    def is_over(self) -> bool:
        """Tell whether what follows the epoch has taken as long as it may."""
        return self._over_s is not None and time.monotonic() >= self._over_s

    def gives(self) -> Callable[[], Any] | None:
        """Return what gives the next batch of a training loader: its end, or None for its own."""
        if not self._is_cutting:
            return None
        self.has_cut = True
        return _stop

    def begun(self) -> None:
        """A training loader was asked for a new iterator: the next epoch has begun."""
        if self.has_cut:
            self._is_cutting = False


def _stop() -> Any:
    raise StopIteration
