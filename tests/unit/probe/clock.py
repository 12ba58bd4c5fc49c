"""A clock that tests turn by hand, in place of those that the probe reads."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import pytest

from hotlap.fast import choice

MODULES = (
    "hotlap.fast.reference",
    "hotlap.probe.timeline",
    "hotlap.probe.journal",
    "hotlap.probe.optimizers",
    "hotlap.probe.touches",
)


class _Compiled:
    """The clock that compiled hooks read, as an attribute that a patch can set and take back."""

    @property
    def clock(self) -> Callable[[], int] | None:
        return None

    @clock.setter
    def clock(self, read: Callable[[], int] | None) -> None:
        assert choice.hooks is not None
        choice.hooks.set_clock(read)


class Clock:
    """now: monotonic nanoseconds; cpu: CPU time of the thread, the same unless told otherwise."""

    def __init__(self, now: int = 1_000_000_000) -> None:
        self.now = now

    def pass_ns(self, duration: int) -> None:
        """Let time go by."""
        self.now += duration

    def read(self) -> int:
        """Return the time, as ``perf_counter_ns`` does."""
        return self.now

    def install(self, patch: pytest.MonkeyPatch) -> Clock:
        """Let the probe read this clock."""
        for name in MODULES:
            module = importlib.import_module(name)
            for reader in ("perf_counter_ns", "thread_time_ns"):
                if hasattr(module, reader):
                    patch.setattr(module, reader, self.read)
        if choice.hooks is not None:
            patch.setattr(_Compiled(), "clock", self.read)
        return self
