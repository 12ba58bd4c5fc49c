"""Where a step's end costs time, that time is booked where the user's line sees it."""

from __future__ import annotations

import pytest

from hotlap.probe import optimizers, timeline
from unit.probe.script import Net, Optimizer, Script


def test_losing_the_core_at_our_system_call_is_optimizer_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    script = Script(monkeypatch)
    net, optimizer = Net(), Optimizer()

    def call() -> int:
        script.clock.pass_ns(700)
        return script.clock.read()

    monkeypatch.setattr(optimizers, "thread_time_ns", call)
    for _ in range(2):
        script.train(net, optimizer)
    assert script.ticks[-1] == {"forward": 30, "other": 2, "backward": 50, "optimizer": 709}


def test_the_cpu_time_of_a_first_step_is_not_negative(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step by backward alone begins and ends at one instant, as its clocks are read in turn."""
    script = Script(monkeypatch)

    def call() -> int:
        script.clock.pass_ns(5)
        return script.clock.read()

    monkeypatch.setattr(timeline, "thread_time_ns", call)
    first: list[int] = []
    monkeypatch.setattr(script.journal, "first_step", lambda _at, _accounts, cpu: first.append(cpu))
    script.backward(50)
    assert script.journal.raw[0][5] >= first[0]
