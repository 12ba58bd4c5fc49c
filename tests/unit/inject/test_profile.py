"""Looks are booked on the phase that they turn out to belong to, and none is lost."""

from __future__ import annotations

import sys
import threading
import time
import weakref
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hotlap.fast.choice import stacks as all_stacks
from hotlap.inject.conditions import instructions, profile, profiling
from hotlap.inject.conditions.profile import Table, Waiting
from hotlap.inject.conditions.sampler import (
    DEPTH,
    NOTHING,
    OTHER,
    Haste,
    Sampler,
    Stack,
    Stacks,
)
from hotlap.inject.conditions.thread_clocks import ThreadClocks
from hotlap.probe.ledger import COMPILE, DATA_WAIT, EPOCH_EDGE, FORWARD
from hotlap.probe.ledger import OTHER as HOST
from hotlap.probe.places import Places
from hotlap.probe.stretches import Stretch
from hotlap.runs.profiles import Tables
from hotlap.values.trial import ProfileEntry, TrialPlan

ME = threading.get_ident()


class Scene:
    """A training thread as a sampler sees it: what is open, how many steps have ended."""

    def __init__(self) -> None:
        self.stacks = Stacks(Places("/start"))
        self.stack: Stack = self.stacks.of(all_stacks((ME,), DEPTH)[ME])
        self.table = Table(self.stacks)
        self.ledger = SimpleNamespace(current=HOST)
        self.begun = False
        self.timeline: Any = SimpleNamespace(
            ticks=0, stretch=None, at_edge=False, may_have_begun=lambda: self.begun
        )
        self.journal: Any = SimpleNamespace(first_step_ns=None)
        self.waiting = Waiting(self.table, self.ledger, self.timeline, self.journal)

    def look(self, now: int, account: int, times: int = 1) -> None:
        """Look, once or several times, while an account is open."""
        self.ledger.current = account
        for _ in range(times):
            self.waiting.look(now, self.stack, 10, (4, 5))

    def tick(self, first_ns: int | None = None) -> None:
        """End a step; the first one says when it began."""
        self.timeline.ticks += 1
        if first_ns is not None:
            self.journal.first_step_ns = first_ns

    def entries(self, closed: bool = True) -> tuple[ProfileEntry, ...]:
        """Return what a reader finds in the table that would be written now."""
        content = self.waiting.whole(closed).to_dict(lambda name: name)
        told = {"pid": 1, "began_ns": 0, "ended_ns": 100, "role": "trainer", "hz": 1.0}
        counts = dict.fromkeys(("looks", "late", "late_ns", "cost_ns"), 0)
        tables = Tables()
        tables.take("prof", {**told, **counts, **_through_json(content)})
        return tables.profile(self.journal.first_step_ns, None)

    def samples(self, closed: bool = True) -> dict[str, int]:
        """Return looks by phase."""
        found: dict[str, int] = {}
        for one in self.entries(closed):
            found[one.phase] = found.get(one.phase, 0) + one.samples
        return found


def _through_json(value: Any) -> Any:
    import json

    return json.loads(json.dumps(value))


def test_before_the_first_step_is_start_up() -> None:
    scene = Scene()
    scene.look(1, HOST, 3)
    scene.look(2, COMPILE)
    scene.look(3, EPOCH_EDGE)
    scene.begun = True
    scene.look(10, DATA_WAIT)  # the loop may have asked for its first batch, at 12 it really does
    scene.look(20, FORWARD, 2)
    assert scene.samples() == {"start_up": 6, "compile": 1, "epoch_edge": 1}, "no step yet"
    scene.tick(first_ns=12)
    scene.look(30, HOST)
    scene.tick()
    assert scene.samples() == {
        "start_up": 4,
        "compile": 1,
        "epoch_edge": 1,
        "forward": 2,
        "other": 1,
    }


def test_after_the_last_step_is_shut_down_only_when_the_run_is_over() -> None:
    scene = Scene()
    scene.tick(first_ns=0)
    scene.look(5, FORWARD)
    scene.tick()
    scene.look(6, HOST, 2)
    scene.look(7, EPOCH_EDGE)
    scene.look(8, COMPILE)
    assert scene.samples(closed=False) == {"forward": 1, "other": 2, "epoch_edge": 1, "compile": 1}
    assert scene.samples() == {"forward": 1, "shut_down": 3, "compile": 1}
    scene.look(9, FORWARD)
    scene.tick()
    scene.look(10, FORWARD)
    assert scene.samples() == {
        **{"forward": 2, "other": 2, "epoch_edge": 1, "compile": 1},
        "shut_down": 1,
    }


@pytest.mark.parametrize(
    ("until", "passes", "evaluated"), [(0, 3, 0), (20, 3, 2), (None, 1, 3), (None, 0, 0)]
)
def test_a_stretch_is_evaluation_as_far_as_it_turned_out_to_be(
    until: int | None, passes: int, evaluated: int
) -> None:
    scene = Scene()
    scene.tick(first_ns=0)
    stretch = scene.timeline.stretch = Stretch()
    stretch.passes = passes
    for now in (10, 20, 30):
        scene.look(now, FORWARD)
    scene.look(20, COMPILE)
    stretch.until_ns = until
    scene.timeline.stretch = None
    scene.look(40, HOST)
    scene.tick()
    found = scene.samples()
    assert found.pop("evaluation", 0) == evaluated
    assert found.pop("forward", 0) == 3 - evaluated
    assert found == {"compile": 1, "other": 1}


def test_the_wait_that_brought_no_batch_is_the_edge_of_the_epoch() -> None:
    scene = Scene()
    scene.tick(first_ns=0)
    scene.look(5, FORWARD)
    scene.look(6, DATA_WAIT, 2)
    scene.timeline.at_edge = True
    scene.look(7, EPOCH_EDGE)
    scene.timeline.at_edge = False
    scene.look(8, DATA_WAIT)
    scene.tick()
    assert scene.samples() == {"forward": 1, "epoch_edge": 3, "data_wait": 1}


def test_too_many_waiting_looks_are_decided_by_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "WAITING", 10)
    scene = Scene()
    scene.tick(first_ns=0)
    scene.look(5, FORWARD, 99)
    assert len(scene.waiting._looks) <= 10
    assert sum(scene.samples().values()) == 99


def test_a_full_table_keeps_the_time_under_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile, "KEYS", 2)
    scene = Scene()
    scene.tick(first_ns=0)
    for account in (FORWARD, HOST, DATA_WAIT, DATA_WAIT):
        scene.look(5, account)
    scene.tick()
    entries = {one.phase: one for one in scene.entries()}
    assert {phase: one.samples for phase, one in entries.items()} == {
        **{"forward": 1, "other": 1},
        "data_wait": 2,
    }
    assert entries["forward"].place is not None
    assert (entries["data_wait"].place, entries["data_wait"].leaf) == (None, "other")


def test_states_of_what_the_kernel_told() -> None:
    table = Table(Scene().stacks)
    table.add("idle", 0, OTHER, 30, (10, 5))
    table.add("idle", 0, OTHER, 30, None)
    table.add("fetch", 0, OTHER, 30, None)
    scene = Scene()
    scene.waiting._table = table
    idle, fetch = scene.entries()
    assert (idle.ns, idle.working_ns, idle.runqueue_ns, idle.blocked_ns) == (60, 20, 10, 30)
    assert (fetch.ns, fetch.working_ns, fetch.runqueue_ns, fetch.blocked_ns) == (
        *(30, None, None),
        None,
    )


def test_slices_of_time_become_wider_and_keep_their_looks() -> None:
    scene = Scene()
    scene.tick(first_ns=0)
    seconds = 1000
    for second in range(seconds):
        scene.look(second * 1_000_000_000 + 1, FORWARD)
    scene.tick()
    assert scene.waiting.whole(True).slice_ns == 16_000_000_000
    tables = Tables()
    content = scene.waiting.whole(True).to_dict(lambda name: name)
    told = {"pid": 1, "began_ns": 0, "ended_ns": 100, "role": "trainer", "hz": 1.0}
    counts = dict.fromkeys(("looks", "late", "late_ns", "cost_ns"), 0)
    tables.take("prof", {**told, **counts, **_through_json(content)})
    (entry,) = tables.profile(0, seconds * 1_000_000_000)
    assert sum(entry.over_time) == seconds
    assert max(entry.over_time) - min(entry.over_time) <= 2


def test_the_stack_of_this_test() -> None:
    stacks = Stacks(Places("/start"))

    def inner() -> Stack:
        return stacks.of(all_stacks((ME,), DEPTH)[ME])

    (first, second, *_), leaf = inner()
    code, name = stacks.codes[leaf]
    assert code is inner.__code__
    assert name.endswith("inner")
    assert first[0] == leaf
    line, span = instructions.position(code, first[1])
    assert line == inner.__code__.co_firstlineno + 1
    assert (span is not None) == (sys.version_info >= (3, 11))
    assert stacks.codes[second[0]][0].co_name == "test_the_stack_of_this_test"


def test_a_thread_without_frames_is_told_from_one_that_has_ended() -> None:
    stacks = Stacks(Places("/start"))
    assert stacks.of(None) == OTHER
    assert stacks.of([]) == NOTHING


def test_deep_recursion_keeps_the_innermost_frames() -> None:
    stacks = Stacks(Places("/start"))

    def dive(depth: int) -> Stack:
        return dive(depth - 1) if depth else stacks.of(all_stacks((ME,), DEPTH)[ME])

    mine, _ = dive(300)
    assert len(mine) == 7


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux tells")
def test_clocks_of_a_thread_that_is_gone_say_nothing() -> None:
    clocks = ThreadClocks(2**22 - 1)
    assert clocks.since(100) is None
    assert clocks.since(100) is None
    clocks.close()


@pytest.fixture
def interval() -> Iterator[float]:
    """Return the interpreter's switch interval, and set it back in the end."""
    before = sys.getswitchinterval()
    yield before
    sys.setswitchinterval(before)


def threads(**files: str) -> Any:
    """Return stacks of threads 1, 2 … that are in these files."""
    return {
        int(name[1:]): [(SimpleNamespace(co_filename=file), 0, None)]
        for name, file in files.items()
    }


def test_haste_ends_while_another_thread_runs(interval: float) -> None:
    haste = Haste(0.001)
    haste.suit(threads(t1="train.py", t2="sampler.py", t3="/lib/threading.py"), 1, 2)
    assert sys.getswitchinterval() == pytest.approx(0.001)
    haste.suit(threads(t1="train.py", t2="sampler.py", t3="loader.py"), 1, 2)
    assert sys.getswitchinterval() == interval
    haste.suit(threads(t1="train.py", t2="sampler.py"), 1, 2)
    assert sys.getswitchinterval() == pytest.approx(0.001)
    haste.end()
    haste.end()
    assert sys.getswitchinterval() == interval


def test_what_the_script_sets_is_left_alone(interval: float) -> None:
    haste = Haste(0.001)
    haste.suit(threads(t1="train.py"), 1)
    sys.setswitchinterval(2 * interval)
    haste.suit(threads(t1="train.py"), 1)
    haste.end()
    haste.suit(threads(t1="train.py"), 1)
    assert sys.getswitchinterval() == pytest.approx(2 * interval)


def test_without_haste_the_interval_is_not_touched(interval: float) -> None:
    haste = Haste(None)
    haste.suit(threads(t1="train.py"), 1)
    assert sys.getswitchinterval() == interval


def test_a_sampler_that_fails_ends_in_words() -> None:
    def look(*_: Any) -> None:
        raise KeyError("no such thing")

    main = threading.get_ident()
    sampler = Sampler(1000.0, Stacks(Places("/start")), lambda: main, look, lambda: None)
    before = threading.active_count()
    sampler.start()
    assert threading.active_count() == before
    deadline = time.monotonic() + 60
    while sampler.failure is None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert sampler.stop()
    assert "KeyError: 'no such thing' (test_profile.py:" in str(sampler.failure)
    assert sampler.failure is not None
    assert sampler.failure.__traceback__ is None
    sampler.start()
    assert not sampler.running, "it has had its chance"


def test_a_sampler_keeps_no_frame() -> None:
    class Witness:
        pass

    main, looks = threading.get_ident(), threading.Semaphore(0)
    sampler = Sampler(
        1000.0, Stacks(Places("/start")), lambda: main, lambda *_: looks.release(), lambda: None
    )

    def held() -> weakref.ref[Witness]:
        witness = Witness()
        for _ in range(3):
            assert looks.acquire(timeout=60)
        return weakref.ref(witness)

    sampler.start()
    reference = held()
    sampler.stop()
    assert reference() is None


@pytest.mark.parametrize(
    ("version", "compiled", "hz", "listens"),
    [
        ((3, 11), False, 100.0, False),
        ((3, 11), False, 0.0, True),
        ((3, 11), True, 100.0, True),
        ((3, 12), False, 100.0, True),
    ],
)
def test_who_walks_by_parts_has_no_function_called_by_the_collector(
    monkeypatch: pytest.MonkeyPatch,
    version: tuple[int, int],
    compiled: bool,
    hz: float,
    listens: bool,
) -> None:
    monkeypatch.setattr(profiling, "hooks", object() if compiled else None)
    monkeypatch.setattr(sys, "version_info", (*version, 0, "final", 0))
    assert profiling.may_listen(TrialPlan(windows=(), sample_hz=hz)) is listens
