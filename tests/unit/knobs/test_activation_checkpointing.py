"""Keeping activations in the place of computing them again: same numbers, fewer passes."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.utils.checkpoint as checkpointing
from torch.utils.checkpoint import checkpoint, checkpoint_sequential

from hotlap.knobs.activation_checkpointing import apply
from hotlap.knobs.target import Target
from hotlap.sites.patches import Patches


@pytest.fixture
def patches() -> Iterator[Patches]:
    given = Patches()
    yield given
    given.undo()


def change(patches: Patches, value: bool = False) -> Target:
    made = Target("activation_checkpointing", value, patches)
    apply(made, value)
    return made


class Counted(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    """A layer with dropout that counts its passes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = torch.nn.Linear(8, 8)
        self.passes = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.passes += 1
        return torch.nn.functional.dropout(torch.tanh(self.layer(x)), 0.5)


def run(call: Any) -> tuple[int, torch.Tensor, torch.Tensor]:
    """Return passes, output and gradient of one forward and backward pass through ``call``."""
    layer, x = Counted(), torch.ones(4, 8, requires_grad=True)
    torch.manual_seed(1)
    out = call(layer, x)
    out.sum().backward()
    assert layer.layer.weight.grad is not None
    return layer.passes, out.detach(), layer.layer.weight.grad


HELD = functools.partial(checkpoint, use_reentrant=False)
WAYS = {
    "new": lambda layer, x: checkpoint(layer, x, use_reentrant=False),
    "held by a library": lambda layer, x: HELD(layer, x),
    "old": lambda layer, x: checkpoint(layer, x, use_reentrant=True),
    "sequential": lambda layer, x: checkpoint_sequential(
        torch.nn.Sequential(layer, torch.nn.Tanh(), torch.nn.Tanh()), 2, x, use_reentrant=False
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_each_layer_runs_once_with_the_same_numbers(way: str, patches: Patches) -> None:
    again, out, gradient = run(WAYS[way])
    assert again == 2
    made = change(patches)
    once, kept_out, kept_gradient = run(WAYS[way])
    assert once == 1
    assert torch.equal(out, kept_out)
    assert torch.equal(gradient, kept_gradient)
    assert made.proof()["acted"]
    patches.undo()
    assert run(WAYS[way])[0] == 2


def test_an_error_of_the_layer_is_the_scripts_own(patches: Patches) -> None:
    change(patches)

    def broken(_: Any) -> Any:
        raise KeyError("mine")

    for way in (True, False):
        with pytest.raises(KeyError, match="mine"):
            checkpoint(broken, torch.ones(1, requires_grad=True), use_reentrant=way)


def test_it_is_never_switched_on(patches: Patches) -> None:
    made = change(patches, value=True)
    assert run(WAYS["new"])[0] == 2
    assert not made.proof()["acted"]
    assert "only be switched off" in made.proof()["proof"]


def test_another_torch_is_told(patches: Patches, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(checkpointing, "CheckpointFunction")
    made = change(patches)
    assert not made.proof()["acted"]
    assert "in another way" in made.proof()["proof"]
