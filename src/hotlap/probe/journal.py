"""Ticks become frames on disk, bounded in size however long the run.

All ticks are summed into windows, whose length grows with the run's age. In full detail are
written the first ``DETAIL`` ticks and excerpts around changes of the step time.
Nothing is written inside a step more often than once a second, in one append of a few KiB.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any, Final

from hotlap.fast.choice import Ticks
from hotlap.fast.reference import Raw as Raw
from hotlap.probe.cycle import Cycle
from hotlap.probe.ledger import WIDTH
from hotlap.runs import frames
from hotlap.runs.recording import Recording
from hotlap.stats.histogram import bucket, quantile
from hotlap.values.phase import ACCOUNTS, RULES, STEP_PHASES

DETAIL: Final = 2000
EXCERPTS: Final = 60
EXCERPT: Final = 64
COLUMNS: Final = (
    "number",
    "end_ns",
    "rule",
    "ordinal",
    *ACCOUNTS,
    "batches",
    "forwards",
    "backwards",
    "cpu_ns",
    "epoch_first",
)
_SECOND: Final = 1_000_000_000
_PARTS: Final = len(STEP_PHASES)
_TOGETHER: Final = 64
"""Ticks that are kept before they are digested."""


class Window:
    """The ticks of a stretch of time, summed."""

    __slots__ = (
        "_base",
        "_last",
        "before_forward_ns",
        "begin_ns",
        "by_optimizer",
        "counts",
        "first_tick",
        "histogram",
        "rule",
        "steps",
        "ticks",
    )

    def __init__(self, first_tick: int, begin_ns: int, rule: str, base: Raw) -> None:
        self.first_tick = first_tick
        self.begin_ns = begin_ns
        self.rule = rule
        self.ticks = 0
        self.steps = 0
        self.before_forward_ns = 0
        self.by_optimizer: dict[int, int] = {}
        self.histogram: dict[int, int] = {}
        self.counts = [0, 0, 0]
        self._base = base
        self._last = base

    @property
    def end_ns(self) -> int:
        """The instant of the last tick."""
        return self._last[0] if self.ticks else self.begin_ns

    def add(self, raw: Raw) -> None:
        """Add one tick. What it has so far is cumulative, so the last one has the sums."""
        self.ticks += 1
        self._last = raw
        batches, forwards, backwards = raw[4]
        counts = self.counts
        counts[0] += batches
        counts[1] += forwards
        counts[2] += backwards
        optimizer = raw[2]
        self.by_optimizer[optimizer] = self.by_optimizer.get(optimizer, 0) + 1

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, the names of ``values.record.Window``."""
        batches, forwards, backwards = self.counts
        return {
            "first_tick": self.first_tick,
            "ticks": self.ticks,
            "steps": self.steps,
            "begin_ns": self.begin_ns,
            "end_ns": self.end_ns,
            "rule": self.rule,
            "by_optimizer": self.by_optimizer,
            "histogram": self.histogram,
            "accounts": _differences(self._last[3], self._base[3]),
            "batches": batches,
            "forwards": forwards,
            "backwards": backwards,
            "cpu_ns": self._last[5] - self._base[5],
            "before_forward_ns": self.before_forward_ns,
        }


class Journal:
    """Collects what one training process has to tell and appends it to its file.

    Inside a step a tick is only kept; once a second all of them are digested and written.
    recording: where frames go. status: called now and then, for frames that are cumulative
    (tables of calls, counters).
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.status: list[Callable[[], None]] = []
        self.begun_ns = perf_counter_ns()
        self.before_forward_ns = 0
        self._raw = Ticks()
        self.first_step_ns: int | None = None
        self._base: Raw = (0, 0, -1, (0,) * WIDTH, [0, 0, 0], 0, False)
        self._wall_ns = 0
        self._number = 0
        self._detail: list[tuple[int, ...]] = []
        self._ring: deque[tuple[int, Raw, Raw]] = deque(maxlen=EXCERPT)
        self._last_written = 0
        self._excerpts = 0
        self._until_excerpt = 0
        self._cycle = Cycle()
        self._step_ns = 0
        self._window: Window | None = None
        self._window_begin_ns = 0
        self._typical_ns: float | None = None
        self._apart: list[int] = []
        self._apart_from = 0
        self._next_write_ns = 0
        self._next_status_ns = 0

    # -- inside a step -----------------------------------------------------------------------

    def first_step(self, at_ns: int, accounts: list[int], cpu_ns: int) -> None:
        """Note where the first step began and what had been booked until then."""
        self.recording.add(frames.encode_json("frst", {"at_ns": at_ns, "accounts": accounts}))
        self.first_step_ns = self._window_begin_ns = at_ns
        self._base = (at_ns, 0, -1, tuple(accounts), [0, 0, 0], cpu_ns, False)
        self._wall_ns = sum(accounts[:_PARTS])

    def loader_trains(self, loader: Any) -> None:
        """Note that a loader feeds backward passes."""
        loader.trains = True
        self.recording.add(frames.encode_json("load", loader.to_dict()))

    def tick(self, raw: Raw) -> None:
        """Take in one tick. Cost: below 1 us, and a flush once a second."""
        kept = self._raw
        kept.append(raw)
        if len(kept) >= _TOGETHER or raw[0] >= kept.due_ns:
            self.kept_enough(raw[0])

    @property
    def kept(self) -> Ticks:
        """The ticks that wait; who adds to them calls ``kept_enough`` at 64, or when it is due."""
        return self._raw

    def kept_enough(self, now: int) -> None:
        """Digest the ticks that have gathered by ``now``, and flush once a second."""
        if len(self._raw) >= _TOGETHER:
            self._digest_kept()
        if now >= self._raw.due_ns:
            self.flush(now)

    # -- once a second -----------------------------------------------------------------------

    def flush(self, now: int) -> None:
        """Digest what has gathered and write it; tables at intervals that grow with the run."""
        self._raw.due_ns = now + _SECOND
        age = now - self.begun_ns
        self._digest_kept()
        if now < self._next_write_ns:
            return
        if self._detail:
            self.recording.add(frames.encode_rows("tick", COLUMNS, self._detail))
            self._detail.clear()
        window = self._window
        if window is not None and now - window.begin_ns >= max(5 * _SECOND, age // 100):
            self._end_window()
            window = None
        if now >= self._next_status_ns:
            self._next_status_ns = now + max(_SECOND, age // 200)
            if window is not None:
                # The open window, provisionally: the reader keeps the last of each first_tick.
                window.before_forward_ns += self.before_forward_ns
                self.before_forward_ns = 0
                self.recording.add(frames.encode_json("wind", window.to_dict()))
            for write in self.status:
                write()
        self.recording.flush()
        # A slow disk is asked less often: at most 1 % of the time may go into writing.
        pause = max(_SECOND, 100 * self.recording.slowest_ns)
        self._next_write_ns = now + min(pause, 60 * _SECOND)

    def close(self, end_ns: int, after_last_tick: list[int]) -> None:
        """Write everything that is left, and the farewell."""
        self._next_status_ns = self._next_write_ns = 0
        self.flush(end_ns)
        if self._until_excerpt:
            self._write_excerpt()
        self._end_window()
        self.recording.add(
            frames.encode_json("bye.", {"end_ns": end_ns, "after_last_tick": after_last_tick})
        )
        self.recording.flush()

    def _digest_kept(self) -> None:
        """Digest what is kept: together, since code that runs once a step is never warm."""
        for raw in self._raw.drain():
            self._digest(raw)

    def _digest(self, raw: Raw) -> None:
        """Keep a tick in detail while there is room, and add it up."""
        self._number += 1
        base, self._base = self._base, raw
        if self._number <= DETAIL:
            self._detail.append(_row(self._number, raw, base))
            self._last_written = self._number
        else:
            self._ring.append((self._number, raw, base))
            if self._until_excerpt:
                self._until_excerpt -= 1
                if not self._until_excerpt:
                    self._write_excerpt()
        rule = RULES[raw[1]]
        window = self._window
        if window is None or window.rule != rule:
            self._end_window()
            window = self._window = Window(self._number, self._window_begin_ns, rule, base)
        window.add(raw)
        wall = sum(raw[3][:_PARTS])
        self._step_ns += wall - self._wall_ns
        self._wall_ns = wall
        if rule != "optimizer" or self._cycle.closes(raw[2]):
            self._end_step(window)

    def _end_step(self, window: Window) -> None:
        place = bucket(self._step_ns)
        window.histogram[place] = window.histogram.get(place, 0) + 1
        window.steps += 1
        self._watch(self._step_ns)
        self._step_ns = 0

    def _watch(self, step_ns: int) -> None:
        """Keep detail around a step that is far out, and around a lasting change of speed."""
        typical = self._typical_ns
        if typical is None:
            return
        if step_ns > 3 * typical and self._number > DETAIL and not self._until_excerpt:
            # Half of the excerpt shows what came before the odd step, half what follows it.
            self._until_excerpt = EXCERPT // 2
        side = (step_ns > 1.25 * typical) - (step_ns < 0.8 * typical)
        if not side or (self._apart and (self._apart[0] > typical) != (side > 0)):
            self._apart.clear()
        if not side:
            return
        if not self._apart:
            self._apart_from = self._number
        self._apart.append(step_ns)
        if self._number - self._apart_from >= EXCERPT // 2 - 1:
            # So many in a row: the speed has changed, and here is both sides of the change.
            if self._number > DETAIL:
                self._until_excerpt = 0
                self._write_excerpt()
            self._typical_ns = sorted(self._apart)[len(self._apart) // 2]
            self._apart.clear()

    def _write_excerpt(self) -> None:
        rows = [_row(*kept) for kept in self._ring if kept[0] > self._last_written]
        if rows and self._excerpts < EXCERPTS:
            self._excerpts += 1
            self._last_written = rows[-1][0]
            self.recording.add(frames.encode_rows("tick", COLUMNS, rows))

    def _end_window(self) -> None:
        window = self._window
        if window is None:
            return
        window.before_forward_ns += self.before_forward_ns
        self.before_forward_ns = 0
        self.recording.add(frames.encode_json("wind", window.to_dict()))
        median = quantile(window.histogram, 0.5)
        if median is not None:
            self._typical_ns = median
            self._apart.clear()
        self._window_begin_ns = window.end_ns
        self._window = None


def _differences(after: tuple[int, ...], before: tuple[int, ...]) -> list[int]:
    return [a - b for a, b in zip(after, before, strict=True)]


def _row(number: int, raw: Raw, base: Raw) -> tuple[int, ...]:
    """Return a tick as it stands in a table: differences to the tick before it."""
    now, rank, optimizer, accounts, counts, cpu_ns, epoch_first = raw
    since = _differences(accounts, base[3])
    return (number, now, rank, optimizer, *since, *counts, cpu_ns - base[5], int(epoch_first))
