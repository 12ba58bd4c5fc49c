"""Python threads beside the one that trains: how long each is on a core, and where.

Python runs one thread at a time. One that works beside the training takes the interpreter from it,
and the training waits at any of its calls: nothing at those lines is to blame.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from time import perf_counter_ns
from typing import Any, Final

from hotlap.fast.choice import stacks
from hotlap.fast.reference import Entries
from hotlap.inject.conditions.instructions import position
from hotlap.inject.conditions.sampler import DEPTH, name_of
from hotlap.inject.conditions.thread_clocks import cpu_clock
from hotlap.probe.places import Places

_PAUSE_NS: Final = 50_000_000
_BUSY: Final = 0.1
"""Share of a core from which on a look at the thread's stack is taken."""
_MOST: Final = 16


class ThreadsBeside:
    """Counts what other threads take. places: tells the user's files."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._next_ns = 0
        self._at_ns = 0
        self._cpu: dict[int, int] = {}
        self._sums: dict[str, int] = {}
        self._seen: dict[str, Counter[tuple[str, tuple[str, int, str] | None]]] = {}
        self._wall_ns = 0

    def look(self, trainer: int) -> None:
        """Look at all threads but this one and the trainer, 20 times a second at most.

        trainer: its ident. Cost: 20 us and 2 us for each thread.
        """
        now = perf_counter_ns()
        if now < self._next_ns:
            return
        since, self._at_ns = now - self._at_ns if self._at_ns else 0, now
        self._next_ns = now + _PAUSE_NS
        self._wall_ns += since
        busy = []
        cpu = {}
        for thread in threading.enumerate():
            native = thread.native_id
            if thread.ident == trainer or native is None:
                continue
            spent = _cpu_ns(native)
            if spent is None:
                continue
            cpu[native] = spent
            took = spent - self._cpu.get(native, spent)
            if since and took >= _BUSY * since:
                busy.append((thread, took))
        self._cpu = cpu
        if busy:
            self._note(busy)

    def _note(self, busy: list[tuple[threading.Thread, int]]) -> None:
        found = stacks(tuple(thread.ident or 0 for thread, _ in busy), DEPTH)
        for thread, took in busy:
            entries = found.get(thread.ident or 0)
            if not entries or (len(self._sums) >= _MOST and thread.name not in self._sums):
                continue
            self._sums[thread.name] = self._sums.get(thread.name, 0) + took
            self._seen.setdefault(thread.name, Counter())[self._where(entries)] += took

    def _where(self, entries: Entries) -> tuple[str, tuple[str, int, str] | None]:
        code, _, module = entries[0]
        place = None
        for users, last, _ in entries:
            if self._places.is_users(users.co_filename):
                line, _ = position(users, last)
                place = (self._places.shown(users.co_filename), line, name_of(users, None))
                break
        return name_of(code, module), place

    def to_list(self) -> list[dict[str, Any]]:
        """Return per thread its name, its time on a core, and where most of that went."""
        found = []
        for name, spent in self._sums.items():
            (leaf, place), _ = self._seen[name].most_common(1)[0]
            found.append(
                {
                    "name": name[:100],
                    "cpu_ns": spent,
                    "wall_ns": self._wall_ns,
                    "leaf": leaf,
                    "place": None if place is None else list(place),
                }
            )
        return sorted(found, key=lambda one: -one["cpu_ns"])


def _cpu_ns(native: int) -> int | None:
    """Return a thread's CPU time; None where it has ended, or where the kernel does not tell."""
    try:
        return time.clock_gettime_ns(cpu_clock(native))
    except (OSError, ValueError, AttributeError, OverflowError):
        return None
