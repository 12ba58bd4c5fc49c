"""A clock that tests turn by hand, in place of those that the probe reads."""

from __future__ import annotations

import importlib

import pytest

MODULES = ("ledger", "timeline", "journal", "loaders", "models", "optimizers", "touches")


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
            module = importlib.import_module(f"hotlap.probe.{name}")
            for reader in ("perf_counter_ns", "thread_time_ns"):
                if hasattr(module, reader):
                    patch.setattr(module, reader, self.read)
        return self
