"""Where a step's end costs time, that time is booked where the user's line sees it."""

from __future__ import annotations

import pytest

from hotlap.probe import optimizers
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
