"""Batches taken by one index: the same as torch's own, or left alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Subset, TensorDataset

from hotlap.knobs.plain_samples import NoPlan, plan_of
from hotlap.sites.patches import Patches
from unit.knobs.cases import put_on

N = 40


class Held:
    """Fields of all kinds, as scripts have them."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.x = rng.normal(size=(N, 3)).astype(np.float32)
        self.columns = np.asfortranarray(self.x)
        self.y = np.arange(N)
        self.t = torch.arange(N * 2).reshape(N, 2)
        self.words = list(range(N))
        self.scale = 2.0
        self.calls = 0

    def __len__(self) -> int:
        return N


class Pair(Held):
    def __getitem__(self, i: int) -> Any:
        return self.x[i], self.y[i]


class Columns(Held):
    def __getitem__(self, i: int) -> Any:
        return self.columns[i]


class Dicts(Held):
    def __getitem__(self, idx: int) -> Any:
        return {"x": self.t[idx], "i": idx, "word": self.words[idx]}


class Lists(Held):
    def __getitem__(self, i: int) -> Any:
        x = torch.from_numpy(self.x[i])
        y = torch.tensor(self.y[i], dtype=torch.float32)
        return [x, y, (self.t[i].float(), int(self.y[i]), float(self.y[i]))]


class Copies(Held):
    def __getitem__(self, i: int) -> Any:
        return torch.as_tensor(self.x[i].astype("float64")), self.t[i].clone()


class Typed(Held):
    def __getitem__(self, i: int) -> Any:
        return torch.tensor(self.x[i].astype(np.float64)), torch.tensor(self.words[i])


TENSORS = TensorDataset(torch.randn(N, 2, 3), torch.arange(N), torch.randn(3, N).t())
SUBSET = Subset(Subset(Pair(), list(range(5, 35))), list(range(20, 0, -1)))
GOOD = [TENSORS, Pair(), Columns(), Dicts(), Lists(), Copies(), Typed(), SUBSET]


def bits(batch: Any) -> Any:
    """Return all that there is to a batch."""
    if isinstance(batch, torch.Tensor):
        return batch.dtype, batch.stride(), batch.tolist()
    if isinstance(batch, dict):
        return {key: bits(one) for key, one in batch.items()}
    return type(batch), [bits(one) for one in batch]


def batches(dataset: Any, **more: Any) -> list[Any]:
    """Return the batches of an epoch, the last one smaller."""
    torch.manual_seed(1)
    loader = DataLoader(dataset, batch_size=3, shuffle=True, **more)
    return [bits(batch) for batch in loader]


def name_of(dataset: Any) -> str:
    return type(dataset).__name__


@pytest.mark.parametrize("dataset", GOOD, ids=name_of)
def test_batches_are_the_same(dataset: Any, patches: Patches) -> None:
    plain = batches(dataset)
    target = put_on("batched_fetch", True, patches)
    assert batches(dataset) == plain
    assert target.proof()["times"] == len(plain) - 3, target.proof()["proof"]
    assert batches(dataset) == plain
    assert target.proof()["times"] == 2 * len(plain) - 3  # proven once for each data set
    patches.undo()
    assert batches(dataset) == plain
    assert target.proof()["times"] == 2 * len(plain) - 3


@pytest.mark.parametrize("dataset", [TENSORS, Pair()], ids=name_of)
def test_batches_of_workers_are_the_same(dataset: Any, patches: Patches) -> None:
    plain = batches(dataset)
    put_on("batched_fetch", True, patches)
    assert batches(dataset, num_workers=1) == plain


class Counts(Held):
    def __getitem__(self, i: int) -> Any:
        self.calls += 1
        return self.x[i]


class Draws(Held):
    def __getitem__(self, i: int) -> Any:
        return self.x[i] + np.random.rand()


class Branches(Held):
    def __getitem__(self, i: int) -> Any:
        return self.x[i] if self.scale else self.t[i]


class Transformed(Held):
    def __getitem__(self, i: int) -> Any:
        return torch.flip(self.t[i], (0,))


class Deeper(Held):
    def __getitem__(self, i: int) -> Any:
        return self.t[i][0]


class Constant(Held):
    def __getitem__(self, i: int) -> Any:
        return self.x[i], 0


class Answers(Pair):
    def __getattribute__(self, name: str) -> Any:
        return object.__getattribute__(self, name)


class Batches(Pair):
    def __getitems__(self, indices: list[int]) -> Any:
        return [self[i] for i in indices]


BAD = [Counts, Draws, Branches, Transformed, Deeper, Constant, Answers, Batches]


@pytest.mark.parametrize("kind", BAD, ids=lambda kind: str(kind.__name__))
def test_what_does_more_than_take_rows_is_left_alone(kind: type, patches: Patches) -> None:
    with pytest.raises(NoPlan):
        plan_of(kind())
    target = put_on("batched_fetch", True, patches)
    list(DataLoader(kind(), batch_size=4))
    assert not target.proof()["acted"]
    assert "left as it is" in target.proof()["proof"]


class Property(Held):
    @property
    def drawn(self) -> Any:
        self.calls += 1
        return self.x

    def __getitem__(self, i: int) -> Any:
        return self.drawn[i]


def test_a_property_is_no_field(patches: Patches) -> None:
    target = put_on("batched_fetch", True, patches)
    held = Property()
    list(DataLoader(held, batch_size=4))
    assert held.calls == N
    assert not target.proof()["acted"]


def test_another_collate_function_is_the_scripts_own(patches: Patches) -> None:
    target = put_on("batched_fetch", True, patches)
    list(DataLoader(Pair(), batch_size=4, collate_fn=lambda rows: rows))
    assert not target.proof()["acted"]
    assert "put together" in target.proof()["proof"]


def test_an_error_is_torchs_own(patches: Patches) -> None:
    put_on("batched_fetch", True, patches)
    loader = DataLoader(TENSORS, batch_size=2, sampler=[*range(10), N, 0])
    with pytest.raises(IndexError):
        list(loader)


def test_negative_indices_and_fields_that_change_are_seen(patches: Patches) -> None:
    put_on("batched_fetch", True, patches)
    held = Pair()
    loader = DataLoader(held, batch_size=2, sampler=[*range(12), -1, -2])
    assert [int(y) for _, batch in loader for y in batch][-2:] == [N - 1, N - 2]
    held.x = held.x * 2
    assert float(next(iter(loader))[0][0, 0]) == float(held.x[0, 0])
