"""Ticks become frames on disk, bounded in size however long the run.

All ticks are summed into windows, whose length grows with the run's age. In full detail are
written the first ``DETAIL`` ticks and excerpts around changes of the step time.
Nothing is written inside a step more often than once a second, in one append of a few KiB.
"""

from __future__ import annotations

from collections import deque
from time import perf_counter_ns
from typing import Any, Final

from hotlap.probe.cycle import Cycle
from hotlap.probe.ledger import WIDTH
from hotlap.runs import frames
from hotlap.runs.recording import Recording
from hotlap.stats.histogram import bucket, quantile
from hotlap.values.phase import ACCOUNTS, STEP_PHASES

DETAIL: Final = 2000
EXCERPTS: Final = 60
EXCERPT: Final = 64
RULES: Final = ("optimizer", "explicit", "loader", "backward")
COLUMNS: Final = (
    "number",
    "end_ns",
    "rule",
    "optimizer",
    *ACCOUNTS,
    "batches",
    "forwards",
    "backwards",
    "cpu_ns",
    "epoch_first",
)
_SECOND: Final = 1_000_000_000
_PARTS: Final = len(STEP_PHASES)


class Window:
    """The ticks of a stretch of time, summed."""

    __slots__ = (
        "accounts",
        "begin_ns",
        "by_optimizer",
        "counts",
        "cpu_ns",
        "end_ns",
        "first_tick",
        "histogram",
        "rule",
        "steps",
        "ticks",
    )

    def __init__(self, first_tick: int, begin_ns: int, rule: str) -> None:
        self.first_tick = first_tick
        self.begin_ns = begin_ns
        self.end_ns = begin_ns
        self.rule = rule
        self.ticks = 0
        self.steps = 0
        self.cpu_ns = 0
        self.by_optimizer: dict[int, int] = {}
        self.histogram: dict[int, int] = {}
        self.accounts = [0] * WIDTH
        self.counts = [0, 0, 0]

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
            "accounts": self.accounts,
            "batches": batches,
            "forwards": forwards,
            "backwards": backwards,
            "cpu_ns": self.cpu_ns,
        }


class Journal:
    """Collects what one training process has to tell and appends it to its file.

    recording: where frames go. status: called at each flush for frames that are cumulative
    (tables of calls, counters); it gets the journal.
    """

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.status: list[Any] = []
        self.begun_ns = perf_counter_ns()
        self._number = 0
        self._detail: list[tuple[int, ...]] = []
        self._ring: deque[tuple[int, ...]] = deque(maxlen=EXCERPT)
        self._last_written = 0
        self._excerpts = 0
        self._until_excerpt = 0
        self._cycle = Cycle()
        self._step_ns = 0
        self._window: Window | None = None
        self._typical_ns: float | None = None
        self._next_flush_ns = 0
        self._next_status_ns = 0

    # -- what the timeline tells -------------------------------------------------------------

    def first_step(self, at_ns: int, accounts: list[int]) -> None:
        """Note where the first step began and what had been booked until then."""
        self.recording.add(frames.encode_json("frst", {"at_ns": at_ns, "accounts": accounts}))
        self._window_begin_ns = at_ns

    def loader_trains(self, loader: Any) -> None:
        """Note that a loader feeds backward passes."""
        loader.trains = True
        self.recording.add(frames.encode_json("load", loader.to_dict()))

    def tick(
        self,
        now: int,
        rule: str,
        optimizer: int,
        deltas: list[int],
        counts: list[int],
        cpu_ns: int,
        epoch_first: bool,
    ) -> None:
        """Take in one tick. Cost: about 5 us, and a flush once a second."""
        self._number += 1
        row = (
            self._number,
            now,
            RULES.index(rule),
            optimizer,
            *deltas,
            *counts,
            cpu_ns,
            int(epoch_first),
        )
        if self._number <= DETAIL:
            self._detail.append(row)
            self._last_written = self._number
        else:
            self._ring.append(row)
            if self._until_excerpt:
                self._until_excerpt -= 1
                if not self._until_excerpt:
                    self._write_excerpt()
        window = self._window
        if window is None or window.rule != rule:
            self._end_window()
            window = self._window = Window(self._number, self._window_begin_ns, rule)
            if self._cycle is None or rule != "optimizer":
                self._step_ns = 0
        self._sum_up(window, row, deltas, optimizer, rule)
        if now >= self._next_flush_ns:
            self.flush(now)

    def _sum_up(
        self, window: Window, row: tuple[int, ...], deltas: list[int], optimizer: int, rule: str
    ) -> None:
        window.ticks += 1
        window.end_ns = row[1]
        window.cpu_ns += row[-2]
        accounts = window.accounts
        for index, value in enumerate(deltas):
            accounts[index] += value
        counts = window.counts
        counts[0] += row[-5]
        counts[1] += row[-4]
        counts[2] += row[-3]
        window.by_optimizer[optimizer] = window.by_optimizer.get(optimizer, 0) + 1
        self._step_ns += sum(deltas[:_PARTS])
        if rule != "optimizer" or self._cycle.closes(optimizer):
            place = bucket(self._step_ns)
            window.histogram[place] = window.histogram.get(place, 0) + 1
            window.steps += 1
            self._watch_for_change(self._step_ns)
            self._step_ns = 0

    # -- detail around changes ----------------------------------------------------------------

    def _watch_for_change(self, step_ns: int) -> None:
        typical = self._typical_ns
        if self._number <= DETAIL or typical is None or self._until_excerpt:
            return
        if step_ns > 3 * typical and self._excerpts < EXCERPTS:
            self._until_excerpt = EXCERPT // 2

    def _write_excerpt(self) -> None:
        rows = [row for row in self._ring if row[0] > self._last_written]
        if rows and self._excerpts < EXCERPTS:
            self._excerpts += 1
            self._last_written = rows[-1][0]
            self.recording.add(frames.encode_rows("tick", COLUMNS, rows))

    # -- windows and flushes -------------------------------------------------------------------

    _window_begin_ns = 0

    def _end_window(self) -> None:
        window = self._window
        if window is None:
            return
        self.recording.add(frames.encode_json("wind", window.to_dict()))
        median = quantile(window.histogram, 0.5)
        if median is not None:
            before = self._typical_ns
            shifted = before is not None and not 0.8 < median / before < 1.25
            if shifted and self._number > DETAIL:
                self._write_excerpt()
            self._typical_ns = median
        self._window_begin_ns = window.end_ns
        self._window = None

    def flush(self, now: int) -> None:
        """Write what has gathered; windows and tables at intervals that grow with the run."""
        age = now - self.begun_ns
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
                self.recording.add(frames.encode_json("wind", window.to_dict()))
            for one in self.status:
                one()
        self.recording.flush()
        # A slow disk is asked less often: at most 1 % of the time may go into writing.
        pause = max(_SECOND, 100 * self.recording.slowest_ns)
        self._next_flush_ns = now + min(pause, 60 * _SECOND)

    def due(self, now: int) -> bool:
        """Tell whether a flush is due (asked between steps, where no tick comes)."""
        return now >= self._next_flush_ns

    def close(self, end_ns: int, after_last_tick: list[int]) -> None:
        """Write everything that is left, and the farewell."""
        self._end_window()
        self._next_status_ns = 0
        self.recording.add(
            frames.encode_json("bye.", {"end_ns": end_ns, "after_last_tick": after_last_tick})
        )
        self.flush(end_ns)
