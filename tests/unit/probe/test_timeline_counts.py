"""Batches, forward and backward passes that a tick counts are those of its own step."""

from __future__ import annotations

import pytest

from unit.probe.script import Net, Optimizer, Script


@pytest.mark.parametrize("ahead", [0, 1])
def test_a_sanity_check_takes_no_batches_from_the_first_step(
    monkeypatch: pytest.MonkeyPatch, ahead: int
) -> None:
    """As trainers do it: an evaluation first, the mode put back unseen, a batch fetched ahead."""
    script = Script(monkeypatch)
    net, optimizer = Net(), Optimizer()
    training, held_out = script.loader(), script.loader()
    script.mode(net, False)
    script.grad = False
    for _ in held_out.open().batches(2):
        script.forward(net, 100)
    script.grad = True
    net.training = True
    batches = training.open()
    for _ in range(ahead):
        batches.batch(5)
    for _ in range(3):
        batches.batch(5)
        script.train(net, optimizer)
    counts = [raw[4] for raw in script.journal.raw]
    assert counts == [[1 + ahead, 1, 1], [1, 1, 1], [1, 1, 1]]
    assert script.evaluation == 200
