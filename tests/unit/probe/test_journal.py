"""Ticks on disk: every one in exactly one window, detail where it is wanted, bounded for days."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from hotlap.probe.journal import DETAIL, EXCERPT, EXCERPTS, Journal
from hotlap.runs.frames import Frame, decode, encode_json
from hotlap.runs.reading import read_run
from hotlap.runs.recording import Recording
from hotlap.runs.store import write_manifest
from hotlap.values.phase import ACCOUNTS, RULES
from hotlap.values.record import Process
from unit.probe.clock import Clock
from unit.runs.contents import HELLO

MS = 1_000_000
SECOND = 1_000_000_000
DAY = 86_400 * SECOND
WIDTH = len(ACCOUNTS)
FORWARD = ACCOUNTS.index("forward")
OPTIMIZER, LOADER, BACKWARD = (RULES.index(name) for name in ("optimizer", "loader", "backward"))


class Writer:
    """A journal with a run directory, and steps that last as long as they are told."""

    def __init__(self, run: Path, clock: Clock) -> None:
        self.run = run
        self.clock = clock
        write_manifest(run, {"format": 1, "spawn_ns": 1})
        self.file = run / "proc" / "node1-x-7-100" / "self.rec"
        self.journal = Journal(Recording(self.file, "process"))
        self.journal.recording.add(encode_json("helo", HELLO))
        self.accounts = [0] * WIDTH
        self.steps: list[int] = []
        self.begun = clock.now
        self.journal.first_step(clock.now, self.accounts, clock.now)

    def step(self, ns: int, rank: int = OPTIMIZER, optimizer: int = 0) -> None:
        """Make one tick."""
        self.clock.pass_ns(ns)
        self.accounts[FORWARD] += ns
        self.steps.append(ns)
        now = self.clock.now
        owner = optimizer if rank == OPTIMIZER else -1
        self.journal.tick((now, rank, owner, tuple(self.accounts), [1, 2, 3], now, False))

    def many(self, count: int, ns: int) -> None:
        for _ in range(count):
            self.step(ns)

    def close(self) -> Process:
        """Close the journal and read it back, each tick covered once."""
        self.journal.close(self.clock.now, [0] * WIDTH)
        process = self.read()
        covered(process, len(self.steps), self.begun, self.clock.now)
        assert sum(window.accounts[FORWARD] for window in process.windows) == sum(self.steps)
        return process

    def read(self) -> Process:
        record = read_run(self.run)
        assert record.damage == ()
        (process,) = record.processes
        return process

    def frames(self) -> list[Frame]:
        return [frame for frame in decode(self.file.read_bytes()) if isinstance(frame, Frame)]


def covered(process: Process, ticks: int, begin: int, end: int) -> None:
    """Assert that the windows follow each other without gap or overlap, in ticks and in time."""
    number, at = 1, begin
    for window in process.windows:
        assert (window.first_tick, window.begin_ns) == (number, at)
        assert sum(window.by_optimizer.values()) == window.ticks
        assert sum(window.histogram.values()) == window.steps
        assert window.end_ns - window.begin_ns == sum(window.accounts)
        assert (window.batches, window.forwards, window.backwards) == tuple(
            window.ticks * count for count in (1, 2, 3)
        )
        number, at = number + window.ticks, window.end_ns
    assert (number, at) == (ticks + 1, end)


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    return Writer(tmp_path, Clock().install(monkeypatch))


def test_the_first_steps_are_kept_in_full_detail(writer: Writer) -> None:
    writer.many(DETAIL + 500, 10 * MS)
    process = writer.close()
    assert [tick.number for tick in process.ticks] == list(range(1, DETAIL + 1))
    tick = process.ticks[5]
    assert (tick.rule, tick.optimizer, tick.accounts[FORWARD]) == ("optimizer", 0, 10 * MS)
    assert (tick.batches, tick.forwards, tick.backwards, tick.cpu_ns) == (1, 2, 3, 10 * MS)


@pytest.mark.parametrize("seed", range(5))
def test_windows_cover_every_tick_once_whatever_the_speed(writer: Writer, seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(300):
        ns = int(10 ** generator.uniform(5, 11))
        for _ in range(generator.randrange(1, 10)):
            writer.step(ns, optimizer=generator.choice((0, 0, 0, 1)))
    writer.close()


def test_a_run_that_is_cut_off_has_lost_a_second_at_most(writer: Writer) -> None:
    writer.many(3000, 10 * MS)
    process = writer.read()
    seen = sum(window.ticks for window in process.windows)
    assert 3000 - seen <= 101
    covered(process, seen, writer.begun, process.windows[-1].end_ns)


def test_ten_days_stay_small(writer: Writer) -> None:
    """Steps of 20 s: what is written depends on the age of the run, not on the steps."""
    for _ in range(10 * DAY // (20 * SECOND)):
        writer.step(20 * SECOND)
    process = writer.close()
    assert len(process.windows) < 1500
    assert len(writer.frames()) < 5000
    assert writer.file.stat().st_size < 4 << 20


def test_a_hundred_changes_of_speed_stay_small(writer: Writer) -> None:
    writer.many(DETAIL, 10 * MS)
    for index in range(100):
        writer.many(700, (30, 10)[index % 2] * MS)
    writer.close()
    tables = [frame for frame in writer.frames() if frame.tag == "tick"]
    kept = sum(len(frame.rows()[1]) for frame in tables)
    assert DETAIL < kept <= DETAIL + EXCERPTS * EXCERPT
    assert writer.file.stat().st_size < 4 << 20


@pytest.mark.parametrize(("before", "after"), [(10, 14), (10, 30), (10, 100), (30, 10), (10, 7)])
@pytest.mark.parametrize("lead", [1, 300, 4000])
def test_detail_shows_both_sides_of_a_lasting_change(
    writer: Writer, before: int, after: int, lead: int
) -> None:
    writer.many(DETAIL + lead, before * MS)
    change = len(writer.steps)
    writer.many(8000, after * MS)
    kept = [tick.number for tick in writer.close().ticks if tick.number > DETAIL]
    assert change + 1 in kept
    assert change + EXCERPT // 4 in kept
    assert lead == 1 or change - EXCERPT // 4 in kept
    assert len(kept) <= 3 * EXCERPT, "a change that lasts is told once, not again and again"


def test_detail_shows_what_surrounds_a_single_slow_step(writer: Writer) -> None:
    writer.many(DETAIL + 1000, 10 * MS)
    slow = len(writer.steps) + 1
    writer.step(100 * MS)
    writer.many(1000, 10 * MS)
    kept = [tick.number for tick in writer.close().ticks if tick.number > DETAIL]
    assert kept == list(range(slow - EXCERPT // 2 + 1, slow + EXCERPT // 2 + 1))


def test_a_slow_step_just_before_the_end_is_kept(writer: Writer) -> None:
    writer.many(DETAIL + 1000, 10 * MS)
    writer.step(100 * MS)
    writer.many(3, 10 * MS)
    assert writer.close().ticks[-1].number == len(writer.steps)


def test_noise_is_no_change(writer: Writer) -> None:
    generator = random.Random(1)
    for _ in range(20_000):
        writer.step(int(10 * MS * generator.uniform(0.6, 1.6)))
    assert len(writer.close().ticks) == DETAIL


def test_a_stronger_rule_opens_a_window_of_its_own(writer: Writer) -> None:
    writer.step(10 * MS, rank=BACKWARD)
    for _ in range(3):
        writer.step(10 * MS, rank=LOADER)
    writer.many(5, 10 * MS)
    windows = writer.close().windows
    assert [(one.rule, one.ticks) for one in windows] == [
        ("backward", 1),
        ("loader", 3),
        ("optimizer", 5),
    ]
    assert [one.by_optimizer for one in windows] == [{-1: 1}, {-1: 3}, {0: 5}]


def test_steps_of_a_cycle_are_counted_not_its_ticks(writer: Writer) -> None:
    for _ in range(200):
        for optimizer in (0, 0, 0, 1):
            writer.step(10 * MS, optimizer=optimizer)
    windows = writer.close().windows
    steps = sum(window.steps for window in windows)
    assert 200 <= steps <= 204, "the first cycle cannot be known while it lasts"
    assert sum(window.by_optimizer[1] for window in windows) == 200


def test_closing_twice_says_the_same(writer: Writer) -> None:
    writer.many(50, 10 * MS)
    once = writer.close()
    assert writer.close() == once
    assert once.end_ns == writer.clock.now


def test_nothing_at_all_is_a_farewell(writer: Writer) -> None:
    process = writer.close()
    assert (process.ticks, process.windows) == ((), ())
    assert process.after_last_tick == (0,) * WIDTH


def test_a_slow_disk_is_asked_less_often_and_memory_stays_small(writer: Writer) -> None:
    writer.many(200, 10 * MS)
    writer.journal.recording.slowest_ns = SECOND
    flushed: list[int] = []
    flush = writer.journal.recording.flush

    def slow() -> bool:
        flushed.append(writer.clock.now)
        return flush()

    writer.journal.recording.flush = slow  # type: ignore[method-assign]  # a disk of the test's own
    most = 0
    for _ in range(12_000):
        writer.step(10 * MS)
        most = max(most, len(writer.journal._raw))
    assert len(flushed) <= 3, "two minutes, and a write costs a second"
    assert most <= 101, "ticks are digested all the same"
    writer.close()


def test_a_lost_disk_loses_no_memory(writer: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(writer.journal.recording, "_append", refuse)
    writer.many(5000, 10 * MS)
    assert writer.journal.recording.lost is not None
    assert len(writer.journal._raw) <= 101
    assert len(writer.journal._detail) == 0
    assert len(writer.journal.recording._pending) == 0


def test_tables_are_written_at_growing_intervals(writer: Writer) -> None:
    written: list[int] = []
    writer.journal.status.append(lambda: written.append(writer.clock.now - writer.begun))
    for _ in range(DAY // (10 * SECOND)):
        writer.step(10 * SECOND)
    assert len(written) < 2000
    gaps = [after - before for before, after in itertools.pairwise(written)]
    assert gaps[-1] > 300 * SECOND > gaps[0]


def test_the_numbers_of_rules_in_old_records_keep_their_meaning() -> None:
    assert RULES == ("", "backward", "loader", "optimizer", "explicit")
