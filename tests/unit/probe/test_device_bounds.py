"""What the device's clock costs and holds at most, and what happens when CUDA fails."""

from __future__ import annotations

from pathlib import Path

import pytest

from hotlap.probe import device
from hotlap.probe import device_reasons as why
from unit.probe.device_fakes import US, FakeCuda, Loop

MARKS = 7
"""Of one step of the loop: two for each of three phases, and the one that ends the sample."""


@pytest.fixture
def cuda() -> FakeCuda:
    return FakeCuda()


@pytest.fixture
def loop(tmp_path: Path, cuda: FakeCuda) -> Loop:
    return Loop(tmp_path, cuda)


@pytest.fixture
def cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let samples cost nothing: how many come must not hang on the speed of this machine."""
    monkeypatch.setattr(device, "COST_NS", 10**12)


def test_the_first_steps_are_left_out_and_then_some_sampled_at_once(loop: Loop) -> None:
    taken_at = {}
    for _ in range(device.WARM_UP + device.AT_ONCE + 10):
        loop.step()
        loop.catch_up()
        taken_at[loop.timeline.ticks] = loop.clock.taken
    # The device is learnt in the first step after warm-up; a sample ends where the next begins.
    first = device.WARM_UP + 3
    assert [taken_at[first - 1], taken_at[first]] == [0, 1]
    assert taken_at[first + device.AT_ONCE - 1] == device.AT_ONCE
    assert loop.clock.taken == device.AT_ONCE


@pytest.mark.usefixtures("cheap")
def test_after_that_few_steps_are_sampled(loop: Loop, cuda: FakeCuda) -> None:
    for _ in range(4000):
        loop.step()
        loop.catch_up()
    later = loop.clock.taken - device.AT_ONCE
    rest = 4000 - device.AT_ONCE
    assert rest / (device.EVERY * 1.3) <= later <= rest / (device.EVERY * 0.75)
    assert cuda.calls["record"] <= MARKS * (loop.clock.taken + 1)


def test_the_dearer_a_sample_the_rarer(loop: Loop) -> None:
    clock = loop.clock
    clock._spent_ns = 50 * device.EVERY * device.COST_NS
    many = clock._interval(US)
    assert many >= 0.75 * 50 * device.EVERY
    assert clock._spent_ns == 0
    clock._spent_ns = 50 * device.EVERY * device.COST_NS
    assert clock._interval(10**9) <= 1.25 * device.EVERY  # a second each: time enough
    assert len({clock._interval(US) for clock.taken in range(20)}) > 10


@pytest.mark.usefixtures("cheap")
def test_events_are_used_again(loop: Loop) -> None:
    for _ in range(1000):
        loop.step()
        loop.catch_up()
    assert loop.clock.resolved > device.AT_ONCE
    assert loop.clock._events.made <= 2 * MARKS


def test_a_device_that_never_comes_to_an_end(
    loop: Loop, cuda: FakeCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "PATIENCE_NS", 0)
    cuda.stuck = True
    for _ in range(3000):
        loop.step()
        loop.catch_up()
    assert loop.clock._events.made <= MARKS * (device.PENDING + 1)
    assert len(loop.clock._pending) <= device.PENDING
    assert loop.clock.dropped > 0
    facts = loop.written("fact")[-1]
    assert facts["device_clock"] == why.BEHIND
    assert facts["device_dropped"] == loop.clock.dropped
    assert not loop.written("devc")


def test_a_device_that_lags_is_asked_again_later(loop: Loop, cuda: FakeCuda) -> None:
    cuda.stuck = True
    for _ in range(100):
        loop.step()
    assert loop.clock.taken == device.PENDING
    cuda.stuck = False
    loop.catch_up()
    assert loop.per_step()["backward"] == 600
    assert loop.clock.resolved == device.PENDING
    assert loop.clock.dropped == 0


def test_a_step_with_very_many_phases(loop: Loop) -> None:
    for _ in range(30):
        for _ in range(device.MARKS):
            loop.forward()
        loop.backward()
        loop.update()
    assert loop.clock._events.made <= device.MARKS
    assert loop.written("fact")[-1]["device_clock"] == why.TOO_MANY


def test_an_optimizer_that_raises_leaves_no_phase_open(loop: Loop) -> None:
    for number in range(200):
        loop.forward()
        loop.backward()
        if number % 5 == 0:
            begin, _ = loop.hub.channel("optimizer_step").ends()
            begin(loop.optimizer)  # torch calls no hook at the end of a step that raises
            loop.work(US, 9000 * US)
        else:
            loop.update()
        loop.catch_up()
    told = loop.per_step()
    assert told["backward"] <= 1200
    assert told["optimizer"] == 100


@pytest.mark.parametrize("broken", ["Event", "record", "query", "elapsed_time", "current_stream"])
def test_a_failure_of_cuda_is_one_fault_and_then_silence(
    loop: Loop, cuda: FakeCuda, broken: str
) -> None:
    cuda.broken.add(broken)
    for _ in range(60):
        loop.step()
        loop.catch_up()
    calls = cuda.calls.copy()
    for _ in range(200):
        loop.step()
        loop.catch_up()
    assert cuda.calls == calls
    assert cuda.calls[broken] == 1
    assert loop.timeline.totals[1:] == [260, 260]
    assert not loop.ledger.stack
    (fault,) = loop.written("falt")
    assert fault["site"] == "device_clock"
    assert fault["error"].startswith(f"RuntimeError: CUDA error: {broken} failed")
    assert "device_fakes.py" in fault["error"]
    assert not loop.faults  # the sites stay in: the ledger goes on
    because = loop.written("fact")[-1]["device_clock"]
    assert because == f"the device's events failed: RuntimeError: CUDA error: {broken} failed"


@pytest.mark.usefixtures("cheap")
def test_what_was_resolved_before_a_failure_stays(loop: Loop, cuda: FakeCuda) -> None:
    for _ in range(60):
        loop.step()
        loop.catch_up()
    resolved = loop.clock.resolved
    cuda.broken.add("record")
    for _ in range(2 * device.EVERY):
        loop.step()
    assert len(loop.written("falt")) == 1
    assert resolved > 0
    assert loop.per_step()["forward"] == 300
    assert loop.written("fact")[-1]["device_clock"] is None


def test_a_forked_child_leaves_its_parents_events_alone(loop: Loop, cuda: FakeCuda) -> None:
    for _ in range(30):
        loop.step()
    assert loop.clock._pending
    calls = cuda.calls.copy()
    events, pending = loop.clock._events, loop.clock._pending
    cuda.initialized = False  # what torch says in a child of a process that used CUDA
    loop.clock.after_fork()
    for _ in range(200):
        loop.step()
    loop.clock.write()
    assert cuda.calls == calls
    # Freeing them would be a call of CUDA: they are kept for as long as the child lives.
    kept = [entry for entry in device._left_behind if isinstance(entry, tuple) and events in entry]
    assert kept
    assert pending in kept[0]


def test_nothing_is_said_of_a_process_that_does_not_train(loop: Loop) -> None:
    assert not loop.written("fact")


def test_a_run_that_ends_early_says_so(loop: Loop) -> None:
    for _ in range(5):
        loop.step()
    assert loop.written("fact")[-1]["device_clock"] == why.TOO_SHORT
