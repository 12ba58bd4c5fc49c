"""Preparing batches, measured per batch: wall = thread CPU + waiting for a core + blocked.

Runs in loader workers and, at 0 workers, in the training thread. The split needs two small files
of Linux (``schedstat`` and ``io`` of the thread); without the first, ``blocked`` includes waiting
for a core and is marked as a bound by ``runqueue_ns`` None.

Reading these counters costs 10 us, and up to eight times as much in a step that has evicted them
from the processor's caches. So where batches are quick, a sample of them is measured: how many are
left out after a measured one is drawn by chance, whatever they take, around a mean that holds until
the sum is written; then the sum is scaled to all of its batches. The mean keeps the cost, 50 us,
below a two-thousandth of the time, or half a percent of what preparing batches takes itself.
"""

from __future__ import annotations

import os
import random
import threading
import weakref
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from typing import Any, Final

from hotlap.fast.choice import Sample
from hotlap.sites.hub import Hub

_SINGLY: Final = 32
_TOGETHER: Final = 64
_SECOND: Final = 1_000_000_000
_PAUSE_NS: Final = 100_000_000
"""Time from one measured batch to the next, on average."""
_WORTH_NS: Final = 10_000_000
"""Batches that take this long are all measured; of quicker ones, as many as take it together."""
_MOST_SKIPPED: Final = 15
_SKIPPED: Final = 1
_SCALED: Final = (
    "samples",
    "wall_ns",
    "cpu_ns",
    "runqueue_ns",
    "blocked_ns",
    "collate_ns",
    "collate_cpu_ns",
    "collate_runqueue_ns",
    "asked_bytes",
    "disk_bytes",
)


class ThreadFiles:
    """The kernel's counters of the calling thread, by descriptors kept open and read in place."""

    def __init__(self) -> None:
        folder = f"/proc/self/task/{threading.get_native_id()}"
        self._schedstat = _open(f"{folder}/schedstat")
        self._io = _open(f"{folder}/io")

    def runqueue_ns(self) -> int | None:
        """Return how long the thread has waited for a core, None if the kernel tells not."""
        if self._schedstat is None:
            return None
        try:
            return int(os.pread(self._schedstat, 96, 0).split()[1])
        except (OSError, IndexError, ValueError):
            self._schedstat = None
            return None

    def io_bytes(self) -> tuple[int, int] | None:
        """Return bytes asked for by reads, and bytes really read from storage."""
        if self._io is None:
            return None
        try:
            lines = os.pread(self._io, 256, 0).split()
            return int(lines[1]), int(lines[9])
        except (OSError, IndexError, ValueError):
            self._io = None
            return None

    def close(self) -> None:
        """Close the descriptors; nothing is told after that."""
        for handle in (self._schedstat, self._io):
            if handle is not None:
                os.close(handle)
        self._schedstat = self._io = None


def _open(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
    except OSError:
        return None


def _difference(after: int | None, before: int | None) -> int | None:
    return None if after is None or before is None else after - before


def _within(wall: int, cpu: int, waited: int | None) -> tuple[int, int | None]:
    """Return CPU time and the wait for a core, as far as they fit into the wall time.

    The clocks cannot be read at one instant: a thread that loses its core between two of them has
    waited, but not in the time that is measured.
    """
    cpu = min(cpu, wall)
    return cpu, None if waited is None else min(waited, wall - cpu)


class Fetch:
    """One batch in preparation."""

    __slots__ = ("collate_cpu", "collate_runqueue", "collate_wall", "cpu", "io", "queue", "wall")

    def __init__(self, files: ThreadFiles) -> None:
        self.collate_wall = 0
        self.collate_cpu = 0
        self.collate_runqueue = 0
        self.io = files.io_bytes()
        self.queue = files.runqueue_ns()
        self.cpu = thread_time_ns()
        self.wall = perf_counter_ns()


class Fetches(Sample):
    """Measures the batches that this process prepares and hands sums over.

    identity: called once per batch for what tells the loader (``loader``, ``worker``,
    ``base_seed``, ``dataset``), or None when this thread's batches are not to be measured.
    write: takes a dictionary with the names of ``values.record.Fetches``.
    Cost: 10 to 80 us per measured batch: every one at first and of those that take 10 ms, later a
    sample.
    ``grain_ns`` has sums written that often, whatever the age of the process; it outlives a fork.
    """

    grain_ns: int | None = None

    def __init__(
        self,
        identity: Callable[[Any], dict[str, Any] | None],
        write: Callable[[dict[str, Any]], None],
    ) -> None:
        super().__init__()
        self.open: Fetch | None
        self._identity = identity
        self._write = write
        self._files: ThreadFiles | None = None
        self._sum: dict[str, Any] | None = None
        self._sum_key: tuple[Any, ...] = ()
        self._written = 0
        self._left_out = 0
        self._maker: weakref.ref[Any] | None = None
        self._mean_skip = 0
        self._gap_ns = _PAUSE_NS
        self._measured_ns = 0
        self._chance = random.Random(os.getpid()).random
        self._begun_ns = perf_counter_ns()
        self._packed_ns = 0
        self.unpacked_ns = 0
        self.packs = False

    def attach(self, hub: Hub) -> None:
        """Subscribe to the sites where batches are made and handed over."""
        hub.subscribe("fetch", self.fetch_begins, self.fetch_ended)
        hub.subscribe("collate", self.collate_begins, self.collate_ended)
        hub.subscribe("pack", self.clock_begins, self.packed)
        hub.subscribe("unpack", self.clock_begins, self.unpacked)

    def fetch_begins(self, subject: tuple[Any, ...]) -> Fetch | int:
        """Read the counters before a batch is made, unless this one is left out of the sample."""
        if self.open is not None or self.skipping:
            return 0
        if self.to_skip and id(subject[0]) == self.fetcher:
            self.to_skip -= 1
            self.skipping = True
            return _SKIPPED
        if self._files is None:
            self._files = ThreadFiles()
        self.open = Fetch(self._files)
        return self.open

    def fetch_ended(self, fetch: Fetch | int, subject: tuple[Any, ...]) -> None:
        """Read them after it and add the difference up."""
        if fetch == _SKIPPED:
            self.skipping = False
            self.skipped += 1
            return
        if not isinstance(fetch, Fetch) or self._files is None:
            return
        wall = perf_counter_ns()
        cpu = thread_time_ns() - fetch.cpu
        queue = self._files.runqueue_ns()
        moved = self._files.io_bytes()
        self.open = None
        identity = self._identity(subject)
        if identity is None:
            return
        took = wall - fetch.wall
        cpu, waited = _within(took, cpu, _difference(queue, fetch.queue))
        indices = subject[1] if len(subject) > 1 else None
        one = {
            "samples": len(indices) if isinstance(indices, (list, tuple)) else None,
            "wall_ns": took,
            "cpu_ns": cpu,
            "runqueue_ns": waited,
            "blocked_ns": took - cpu - (waited or 0),
            "collate_ns": fetch.collate_wall,
            "collate_cpu_ns": fetch.collate_cpu,
            "collate_runqueue_ns": None if waited is None else fetch.collate_runqueue,
            "asked_bytes": None if moved is None or fetch.io is None else moved[0] - fetch.io[0],
            "disk_bytes": None if moved is None or fetch.io is None else moved[1] - fetch.io[1],
        }
        self._add(identity, one, fetch.wall, wall)
        self._know(subject[0])
        self._draw(wall)

    def _know(self, fetcher: Any) -> None:
        """Remember who made the last measured batch, as long as it lives."""
        if self.fetcher == id(fetcher):
            return
        try:
            self._maker = weakref.ref(fetcher, self._forget)
        except TypeError:  # It cannot be told from one that comes after it: none is left out.
            self.fetcher = 0
        else:
            self.fetcher = id(fetcher)

    def _forget(self, _: weakref.ref[Any]) -> None:
        """Leave none out for one that is gone: the next fetcher may have its address."""
        self.fetcher = 0
        self._leave_none_out()

    def _leave_none_out(self) -> None:
        self._left_out -= self.to_skip
        self.to_skip = 0

    def _draw(self, now: int) -> None:
        """Draw how many batches are left out, and learn how quickly they follow each other."""
        gap = (now - self._measured_ns) // (self._left_out - self.to_skip + 1)
        if gap < self._gap_ns:
            self._gap_ns = gap
        self._measured_ns = now
        mean = self._mean_skip if self._sum is not None else 0
        self._left_out = self.to_skip = int(self._chance() * (2 * mean + 1)) if mean else 0

    def collate_begins(self, _: Any) -> tuple[int | None, int, int] | None:
        """Read the counters before samples are put together."""
        if self.open is None or self._files is None:
            return None
        return self._files.runqueue_ns(), thread_time_ns(), perf_counter_ns()

    def collate_ended(self, begun: Any, _: Any) -> None:
        """Read them after."""
        fetch = self.open
        if begun is None or fetch is None or self._files is None:
            return
        queue, cpu, wall = begun
        took = perf_counter_ns() - wall
        spent = thread_time_ns() - cpu
        spent, waited = _within(took, spent, _difference(self._files.runqueue_ns(), queue))
        fetch.collate_wall += took
        fetch.collate_cpu += spent
        fetch.collate_runqueue += waited or 0

    def clock_begins(self, _: Any) -> int:
        """Start the clock of a hand-over."""
        return perf_counter_ns()

    def packed(self, begun: int, _: Any) -> None:
        """A batch has been serialised (by the feeder thread of a worker's queue)."""
        if self.packs:
            self._packed_ns += perf_counter_ns() - begun

    def unpacked(self, begun: int, _: Any) -> None:
        """A batch has been rebuilt in the training process."""
        self.unpacked_ns += perf_counter_ns() - begun

    def _add(self, identity: dict[str, Any], one: dict[str, Any], begin: int, end: int) -> None:
        key = tuple(identity.values())
        if self._sum is not None and (key != self._sum_key or self._is_old(begin)):
            self.flush()
        self._sum_key = key
        total = self._sum
        if total is None:
            self._sum = {
                **identity,
                **one,
                "batches": 1,
                "ipc_ns": None,
                "slowest_ns": one["wall_ns"],
                "begin_ns": begin,
                "end_ns": end,
            }
        else:
            for name, value in one.items():
                before = total[name]
                total[name] = None if value is None or before is None else before + value
            total["batches"] += 1
            total["slowest_ns"] = max(total["slowest_ns"], one["wall_ns"])
            total["end_ns"] = end
        self._maybe_flush(end)

    def _is_old(self, now: int) -> bool:
        """Tell whether what is summed up is of another time, where that must not be mixed."""
        return (
            self.grain_ns is not None
            and self._sum is not None
            and now - int(self._sum["begin_ns"]) >= self.grain_ns
        )

    def _maybe_flush(self, now: int) -> None:
        total = self._sum
        if total is None:
            return
        if self.grain_ns is not None:
            if now - total["begin_ns"] >= self.grain_ns:
                self.flush()
            return
        # The interval grows with the age of the process, so that its file stays small for days.
        interval = max(_SECOND, (now - self._begun_ns) // 100)
        together = total["batches"] + self.skipped >= _TOGETHER or interval > _SECOND
        if self._written < _SINGLY or (together and now - total["begin_ns"] >= interval):
            self.flush()

    def continues(self) -> None:
        """Say that earlier processes have written single batches enough to the same file."""
        self._written = _SINGLY

    def flush(self) -> None:
        """Hand over what has been summed up."""
        total = self._sum
        if total is None:
            return
        self._sum = None
        self._leave_none_out()
        self._written += 1
        measured, skipped = total["batches"], self.skipped
        if skipped:
            self.skipped = 0
            total["batches"] = measured + skipped
            for name in _SCALED:
                value = total[name]
                if value is not None:
                    total[name] = value + value * skipped // measured
        if self._written >= _SINGLY:
            each = total["wall_ns"] // total["batches"]
            enough = min(_PAUSE_NS // max(1, self._gap_ns), _WORTH_NS // max(1, each))
            self._mean_skip = min(_MOST_SKIPPED, max(0, enough - 1))
            self._gap_ns = _PAUSE_NS
        if self.packs:
            # The feeder thread packs a batch while the next one is made: the sums agree, not each.
            total["ipc_ns"] = self._packed_ns
            self._packed_ns = 0
        self._write(total)
