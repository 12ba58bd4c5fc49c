"""Small tensors of a batch travel as one, and come back as they were."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader

from hotlap.knobs.compact_hand_over import Packed, packed
from hotlap.sites.patches import Patches
from unit.knobs.cases import put_on

BATCH = {
    "many": [torch.rand(3, 2), torch.arange(4), torch.tensor(2.5), torch.tensor([True, False])],
    "pair": (torch.ones(2, dtype=torch.float16), "text"),
    "words": ["a", None, 3],
}


def shown(value: Any) -> Any:
    """Return all that there is to a batch."""
    if isinstance(value, torch.Tensor):
        return value.dtype, tuple(value.shape), value.stride(), value.tolist()
    if isinstance(value, dict):
        return {key: shown(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return type(value), [shown(one) for one in value]
    return value


def test_a_batch_comes_back_as_it_was() -> None:
    made = pickle.loads(pickle.dumps(packed(BATCH)))
    assert isinstance(made, Packed)
    assert len(made.kinds) == 5
    again = made.unpacked()
    assert shown(again) == shown(BATCH)
    again["many"][0].zero_()
    assert float(again["many"][2]) == 2.5


def test_what_is_large_or_shared_or_no_plain_tensor_travels_as_before() -> None:
    whole = torch.zeros(6)
    same = torch.ones(3)
    others = [
        torch.zeros(1 << 20),
        whole[:2],
        torch.rand(3, 4).t(),
        torch.ones(2, requires_grad=True),
        torch.zeros(0),
        torch.nn.Parameter(torch.ones(2), requires_grad=False),
        same,
        same,
    ]
    assert packed(others) is others
    small = [torch.zeros(2), torch.zeros(3), torch.zeros(4)]
    made = packed([*small, *others])
    assert len(made.kinds) == 3
    again = made.unpacked()
    assert all(one is other for one, other in zip(again[3:], others, strict=True))
    assert packed(small[:2]) == small[:2]


class Columns:
    """Samples of five small tensors each."""

    def __len__(self) -> int:
        return 9

    def __getitem__(self, i: int) -> Any:
        return {name: torch.full((2,), float(i)) for name in "abcde"}


def batches(workers: int) -> list[Any]:
    return [shown(one) for one in DataLoader(Columns(), batch_size=2, num_workers=workers)]


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_of_workers_are_the_same(workers: int, patches: Patches) -> None:
    plain = batches(0)
    target = put_on("compact_hand_over", True, patches)
    assert batches(workers) == plain
    assert target.proof()["acted"] is bool(workers)
    assert target.proof()["times"] == (5 if workers else 0)
    patches.undo()
    assert batches(workers) == plain
    assert target.proof()["times"] == (5 if workers else 0)


def test_an_error_of_a_workers_is_told_as_ever(patches: Patches) -> None:
    class Broken(Columns):
        def __getitem__(self, i: int) -> Any:
            raise KeyError(i)

    put_on("compact_hand_over", True, patches)
    with pytest.raises(KeyError, match="Caught KeyError in DataLoader worker"):
        list(DataLoader(Broken(), num_workers=1))


def test_batches_are_whole_before_they_are_pinned(patches: Patches) -> None:
    target = put_on("compact_hand_over", True, patches)
    seen: list[Any] = []
    place = torch.utils.data._utils.pin_memory

    class Pinned:
        def pin_memory(self) -> Any:
            seen.append(self)
            return self

    held = [torch.zeros(2), torch.zeros(3), torch.zeros(4)]
    made = packed({"tensors": held})
    made.batch["other"] = Pinned()
    made.batch["tensors"] = "taken apart elsewhere"
    assert place.pin_memory(made)["other"] is seen[0]
    assert target.proof()["acted"]
