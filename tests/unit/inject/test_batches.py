"""Batches of all kinds: their size, and copies that a script cannot harm."""

from __future__ import annotations

from collections import UserDict, namedtuple
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from hotlap.inject.conditions import batches

Pair = namedtuple("Pair", ["image", "label"])
X, Y = torch.ones(8, 3), torch.zeros(8, dtype=torch.long)


@dataclass
class Held:
    """A batch in a class of the script's own."""

    rows: Any
    names: list[str]


class Graphs:
    """Many graphs in one, as graph libraries have them."""

    num_graphs = 5

    def __init__(self) -> None:
        self.x = torch.ones(40, 2)


@pytest.mark.parametrize(
    ("batch", "expected", "count"),
    [
        (X, None, 8),
        ([X, Y], None, 8),
        ((X, Y), 8, 8),
        ({"x": X, "y": Y}, None, 8),
        (UserDict({"input_ids": X}), None, 8),
        (Pair(X, Y), None, 8),
        (Held(X, ["a"] * 8), None, 8),
        pytest.param(Graphs(), 2, 5, id="graphs"),
        # A list of samples of their own sizes: the loader's batch size tells it from parts.
        ([torch.ones(3, 5, 5), torch.ones(3, 7, 7)], 2, 2),
        ([{"boxes": torch.ones(4, 4)}, {"boxes": torch.ones(6, 4)}], 2, 2),
        (["one text", "another", "third"], None, 3),
        ([X[:3], Y[:3]], 8, 3),
        (torch.tensor(3.0), None, None),
        pytest.param(object(), None, None, id="object"),
        (7, None, None),
    ],
    ids=str,
)
def test_samples(batch: Any, expected: int | None, count: int | None) -> None:
    assert batches.samples(batch, expected) == count


def same(tensor: Any) -> Any:
    """Return the tensor itself."""
    return tensor


@pytest.mark.parametrize(
    "batch",
    [X, [X, Y], (X, [Y]), {"x": X, "more": {"y": Y}}, UserDict({"x": X}), Pair(X, Y), Held(X, [])],
    ids=lambda one: type(one).__name__,
)
def test_a_copy_is_of_the_same_kind_and_holds_the_same_tensors(batch: Any) -> None:
    made = batches.copied(batch, same)
    assert type(made) is type(batch)
    assert [id(one) for one in batches.tensors(made)] == [id(one) for one in batches.tensors(batch)]
    assert batches.signature(made) == batches.signature(batch)


def test_what_a_script_takes_out_stays_in_the_copy() -> None:
    batch: dict[str, Any] = {"x": [X, Y], "more": {"y": Y}}
    made = batches.copied(batch, same)
    batch["more"].pop("y")
    batch["x"].clear()
    batch.pop("x")
    assert len(made["x"]) == 2
    assert list(made["more"]) == ["y"]


def test_attributes_of_an_object_are_its_own() -> None:
    batch = Held(X, ["a"])
    made = batches.copied(batch, same)
    batch.rows = None
    batch.names.append("b")
    assert made.rows is X
    assert made.names == ["a"]


def test_clones_share_no_memory() -> None:
    batch = [torch.ones(4), torch.ones(4)]
    made = batches.copied(batch, batches.clone)
    batch[0].mul_(2)
    assert made[0].tolist() == [1.0] * 4


@pytest.mark.parametrize(
    "change",
    [
        lambda x: x.add_(1),
        lambda x: x[1:].zero_(),
        lambda x: x.view(-1).mul_(2),
        lambda x: x.requires_grad_(),
    ],
    ids=["add", "part", "view", "grad"],
)
def test_a_change_in_place_shows(change: Any) -> None:
    batch = {"x": torch.ones(4, 2)}
    before = batches.versions(batch)
    assert batches.versions(batch) == before
    change(batch["x"])
    assert batches.versions(batch) != before


def test_tensors_without_a_version_are_borne() -> None:
    with torch.inference_mode():
        batch = [torch.ones(3)]
    assert batches.versions(batch) == ((None, False),)


def test_bytes_are_those_of_all_tensors() -> None:
    assert batches.size_bytes({"x": X, "y": [Y]}) == 8 * 3 * 4 + 8 * 8


def test_a_batch_that_holds_itself_ends() -> None:
    batch: list[Any] = [X]
    batch.append(batch)
    assert batches.samples(batch) == 8
    assert batches.copied(batch, same)[0] is X
