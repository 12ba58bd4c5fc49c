"""Which backward passes go on after the last gradient that an optimizer uses."""

from __future__ import annotations

import time
from typing import Any

import torch
from torch import nn

from hotlap.inject.conditions.gradients import Gradients
from hotlap.probe.places import Places
from hotlap.sites.hub import Hub

PAUSE_NS = 30_000_000


class Slow(torch.autograd.Function):  # type: ignore[misc]  # torch has no types here
    """Takes a while to go back through."""

    @staticmethod
    def forward(_ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x.view_as(x)

    @staticmethod
    def backward(_ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        time.sleep(PAUSE_NS / 1e9)
        return grad


class Maker(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A model whose own backward pass is slow."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.last(Slow.apply(self.first(x)))
        return found


class Stage:
    """Two models and their optimizers, watched as in a trial."""

    def __init__(self) -> None:
        self.maker, self.judge = Maker(), nn.Linear(4, 1)
        self.makers = torch.optim.SGD(self.maker.parameters(), lr=0.1)
        self.judges = torch.optim.SGD(self.judge.parameters(), lr=0.1)
        self.hub = Hub(lambda *_: None)
        self.watch = Gradients(Places("/"), lambda: True, lambda: [self.maker, self.judge])
        self.watch.attach(self.hub)
        self.watch.stepped(2)

    def backward(self, loss: torch.Tensor) -> None:
        """Go back from a loss, as the site does."""
        begin, end = self.hub.channel("backward").ends()
        token = begin(None)
        loss.backward()
        if token:
            end(token, None)

    def step(self, optimizer: torch.optim.Optimizer) -> None:
        """Step, then clear, each told to the watch."""
        optimizer.step()
        begin, end = self.hub.channel("optimizer_step").ends()
        end(begin(optimizer), optimizer)

    def clear(self, optimizer: torch.optim.Optimizer) -> None:
        """Clear the gradients."""
        self.hub.channel("zero_grad").ends()[0](optimizer)
        optimizer.zero_grad()

    def cycle(self, cut: bool) -> None:
        """Train both once. cut: the judge's loss does not reach into the maker."""
        self.clear(self.judges)
        made = self.maker(torch.ones(2, 4))
        self.backward(self.judge(made.detach() if cut else made).sum())
        self.step(self.judges)
        self.clear(self.makers)
        self.backward(self.judge(self.maker(torch.ones(2, 4))).sum())
        self.step(self.makers)


def test_a_pass_through_another_model_is_for_nothing() -> None:
    stage = Stage()
    for _ in range(3):
        stage.cycle(cut=False)
    found = stage.watch.facts()
    file, _, function, spent, wasted = found["discarded"]
    assert (file.rpartition("/")[2], function) == ("test_gradients.py", "backward")
    # Each of the judge's passes went through the maker, whose pause came after the last use.
    assert wasted >= 2 * PAUSE_NS
    assert 0.0 < found["discarded_share"] <= wasted / spent < 1.0


def test_unused_gradients_on_the_way_to_used_ones_are_not() -> None:
    """The maker's loss gives the judge gradients too, which are cleared: it has to go there."""
    stage, open_ended = Stage(), Stage()
    for _ in range(3):
        stage.cycle(cut=True)
        open_ended.cycle(cut=False)
    cut = stage.watch.facts()["discarded_share"]
    assert cut < open_ended.watch.facts()["discarded_share"]
    passes = [one for one in stage.watch._passes if one.done and not one.unknown]
    assert any(len(one.done) > len(list(stage.judge.parameters())) for one in passes)
    for one in passes:
        assert one.used_ns == max(one.done.values())  # the last gradient of each pass is used
        assert one.wasted_ns() == 0  # however long the pass went on, as where ranks wait


def test_gradients_that_a_model_clears_itself_are_seen() -> None:
    stage = Stage()
    for _ in range(3):
        stage.backward(stage.judge(stage.maker(torch.ones(2, 4))).sum())
        stage.step(stage.judges)
        stage.maker.zero_grad()
        stage.judge.zero_grad()
    assert stage.watch.facts()["discarded"][4] >= PAUSE_NS


def test_a_pass_that_no_step_uses_is_made_for_something_else() -> None:
    """So does a sharpness-aware step: it reads the gradients, clears them, and goes back again."""
    stage = Stage()
    for _ in range(3):
        for _ in range(2):
            stage.clear(stage.makers)
            stage.clear(stage.judges)
            stage.backward(stage.judge(stage.maker(torch.ones(2, 4))).sum())
        stage.step(stage.makers)
        stage.step(stage.judges)
    unused = [one for one in stage.watch._passes if not one.unknown and not one.used_ns]
    assert unused
    assert all(one.done and one.wasted_ns() == 0 for one in unused)


def test_hooks_go_after_some_passes() -> None:
    stage = Stage()
    for _ in range(12):
        stage.cycle(cut=True)
    parameters = [*stage.maker.parameters(), *stage.judge.parameters()]
    assert not any(one._post_accumulate_grad_hooks for one in parameters)


def test_without_a_pass_there_is_nothing_to_say() -> None:
    assert Stage().watch.facts() == {}
