"""Which rows of layers have no part in any gradient."""

from __future__ import annotations

import copy
import io
import warnings
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from hotlap.inject.conditions.unused_rows import UnusedRows
from hotlap.probe.places import Places


def looked_at(model: nn.Module, step: Any) -> list[list[Any]]:
    """Return what is found of a model whose training makes ``step``, and that no hook is left."""
    watch = UnusedRows(Places("/"), lambda: True, lambda: [model])
    for steps in range(1, 6):
        step(steps)
        watch.stepped(steps)
    assert not torch.nn.modules.module._global_forward_hooks
    found: list[list[Any]] = watch.facts().get("unused_rows", [])
    return found


class Tagger(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A body that mixes its positions, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(6, 6), nn.Linear(6, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        mixed = self.body(x).cumsum(1)
        found: torch.Tensor = self.head(mixed)
        return found


def test_positions_that_the_loss_ignores() -> None:
    model = Tagger()
    targets = torch.full((4, 10), -100)
    targets[:, 8] = 1
    targets[:, 9] = 2

    def step(_: int) -> None:
        F.cross_entropy(model(torch.randn(4, 10, 6)).flatten(0, 1), targets.flatten()).backward()

    (row,) = looked_at(model, step)  # the body's rows all count: later ones are sums of them
    file, _, function, rows, unused, share, dims = row
    assert file.endswith("test_unused_rows.py")
    assert function == "forward"
    assert (rows, unused, share, dims) == (2 * 40, 2 * 32, pytest.approx(0.8), 3)


class Mixture(nn.Module):  # type: ignore[misc]  # torch has no types here
    """All experts answer; the answers of all but one are multiplied by zero."""

    def __init__(self) -> None:
        super().__init__()
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.Linear(12, 6)) for _ in range(4)
        )

    def forward(self, x: torch.Tensor, choice: torch.Tensor) -> torch.Tensor:
        picked = F.one_hot(choice, 4).to(x.dtype)
        found: torch.Tensor = sum(
            picked[:, at, None] * one(x) for at, one in enumerate(self.experts)
        )
        return found


def test_experts_that_answer_for_nothing() -> None:
    model = Mixture()
    model_of = torch.arange(32) % 4

    def step(_: int) -> None:
        model(torch.randn(32, 6), model_of).sum().backward()

    (row,) = looked_at(model, step)
    assert row[3:] == [2 * 8 * 32, 2 * 8 * 24, pytest.approx(0.75), 2]


def test_layers_within_a_library_s_block_are_not_told_of() -> None:
    block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    model = nn.Sequential(block, nn.Linear(8, 3))

    def step(_: int) -> None:
        found = model(torch.randn(4, 10, 8))
        found[:, :1].sum().backward()  # the block's own last layers answer for all positions

    (row,) = looked_at(model, step)
    assert row[3:] == [2 * 40, 2 * 36, pytest.approx(0.9), 3]


def test_samples_of_a_convolution() -> None:
    model = nn.Conv2d(1, 3, 3)

    def step(_: int) -> None:
        weights = torch.tensor([0.0, 0.0, 0.0, 1.0])
        (model(torch.randn(4, 1, 8, 8)).mean((1, 2, 3)) * weights).sum().backward()

    (row,) = looked_at(model, step)
    assert row[3:] == [2 * 4, 2 * 3, pytest.approx(0.75), 2]


def test_where_all_count_nothing_is_told() -> None:
    model = Tagger()

    def step(_: int) -> None:
        model(torch.randn(4, 10, 6)).pow(2).mean().backward()

    assert looked_at(model, step) == []


def test_two_steps_only_and_no_others_gradient_changes() -> None:
    torch.manual_seed(0)
    model, x = Tagger(), torch.randn(4, 10, 6)
    gradients = []

    def step(_: int) -> None:
        model.zero_grad()
        model(x)[:, 0].sum().backward()
        gradients.append([one.grad.clone() for one in model.parameters()])

    (first, *others) = looked_at(model, step)
    assert first[3] in (2 * 40, 2 * 40 * 2)
    assert len(others) <= 1
    for later in gradients[1:]:
        assert all(torch.equal(one, two) for one, two in zip(later, gradients[0], strict=True))


def test_models_and_outputs_can_be_copied_and_saved_meanwhile() -> None:
    """An average of the weights, a checkpoint of the whole model, outputs that are kept."""
    model = Tagger()
    averages = []

    def step(_: int) -> None:
        averages.append(copy.deepcopy(model))
        found = model(torch.randn(4, 10, 6))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            torch.save((model, found), io.BytesIO())
        found[:, 0].sum().backward()

    assert looked_at(model, step)
    assert not any(vars(one)["_forward_hooks"] for kept in averages for one in kept.modules())


def test_an_evaluation_is_not_looked_at() -> None:
    model = Tagger()

    def step(_: int) -> None:
        with torch.no_grad():
            model(torch.randn(4, 10, 6))

    assert looked_at(model, step) == []
