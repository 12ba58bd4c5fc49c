"""Time in which Python's garbage collector ran, by phase and generation."""

from __future__ import annotations

import gc
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any


class Collector:
    """Listens to the collector. Cost: 1 us per collection.

    phase: tells what the process is doing, in one word.
    """

    def __init__(self, phase: Callable[[], str]) -> None:
        self._phase = phase
        self.reset()

    def reset(self) -> None:
        """Forget everything: this is another process."""
        self._begun_ns: int | None = None
        self.by_phase: dict[str, list[int]] = {}
        self.by_generation: dict[int, int] = {}
        self.longest_ns = 0

    def attach(self) -> None:
        """Begin to listen."""
        gc.callbacks.append(self._called)

    def detach(self) -> None:
        """Stop listening."""
        if self._called in gc.callbacks:
            gc.callbacks.remove(self._called)

    def _called(self, phase: str, info: dict[str, int]) -> None:
        try:
            if phase == "start":
                self._begun_ns = perf_counter_ns()
            elif self._begun_ns is not None:
                took = perf_counter_ns() - self._begun_ns
                self._begun_ns = None
                sums = self.by_phase.setdefault(self._phase(), [0, 0])
                sums[0] += 1
                sums[1] += took
                generation = info["generation"]
                self.by_generation[generation] = self.by_generation.get(generation, 0) + 1
                self.longest_ns = max(self.longest_ns, took)
        except Exception:
            self._begun_ns = None  # an error here would be printed: rather lose one collection

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        phases = dict(self.by_phase)
        return {
            "ns": sum(ns for _, ns in phases.values()),
            "collections": sum(count for count, _ in phases.values()),
            "longest_ns": self.longest_ns,
            "by_generation": {str(one): count for one, count in self.by_generation.items()},
            "by_phase": {
                name: {"collections": count, "ns": ns} for name, (count, ns) in phases.items()
            },
        }
