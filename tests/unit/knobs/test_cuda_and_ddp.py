"""Knobs of CUDA devices, with fakes at that boundary, and of DistributedDataParallel."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

from hotlap.knobs import cuda_allocator
from hotlap.sites.patches import Patches
from unit.knobs.cases import put_on


@pytest.fixture
def cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    """A CUDA device, as far as it is asked for."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pinned_memory", True),
        ("cudnn_benchmark", True),
        ("cuda_allocator", "expandable_segments"),
    ],
)
def test_without_a_device_nothing_is_done(
    name: str, value: Any, patches: Patches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    target = put_on(name, value, patches)
    assert not target.proof()["acted"]
    assert "no CUDA device" in target.proof()["proof"]
    assert torch.backends.cudnn.benchmark is False


@pytest.mark.usefixtures("cuda")
def test_the_benchmark_is_switched_on_and_back(patches: Patches) -> None:
    target = put_on("cudnn_benchmark", True, patches)
    assert torch.backends.cudnn.benchmark is True
    assert target.proof()["acted"]
    patches.undo()
    assert torch.backends.cudnn.benchmark is False


@pytest.mark.usefixtures("cuda")
def test_the_allocator_of_the_device_is_told_by_a_variable(
    patches: Patches, monkeypatch: pytest.MonkeyPatch
) -> None:
    value = "expandable_segments"
    given = cuda_allocator.environment(value, {})
    assert given == {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    own = {"PYTORCH_ALLOC_CONF": "max_split_size_mb:64"}
    assert cuda_allocator.environment(value, own) == {}
    assert not put_on("cuda_allocator", value, patches).proof()["acted"]
    for name, wanted in given.items():
        monkeypatch.setenv(name, wanted)
    assert put_on("cuda_allocator", value, patches).proof()["acted"]


class Copied:
    """Stands for ``Tensor.to``: keeps how it was called, since nothing can be copied there."""

    def __init__(self) -> None:
        self.calls: list[dict[str, Any]] = []

    def __call__(self, tensor: Any, *_args: Any, **kwargs: Any) -> Any:
        self.calls.append(kwargs)
        return tensor


@pytest.fixture
def pinning(monkeypatch: pytest.MonkeyPatch) -> Copied:
    """Pinning and copying that need no device."""
    copied = Copied()
    place = torch.utils.data._utils.pin_memory
    monkeypatch.setattr(place, "pin_memory", lambda data, *_: data)
    monkeypatch.setattr(torch.Tensor, "to", lambda *a, **k: copied(*a, **k), raising=False)
    return copied


@pytest.mark.usefixtures("cuda")
def test_only_batches_that_a_loader_pinned_are_copied_without_waiting(
    patches: Patches, pinning: Copied
) -> None:
    target = put_on("pinned_memory", True, patches)
    assert DataLoader(TensorDataset(torch.zeros(2))).pin_memory is True
    mine, pinned = torch.zeros(2), torch.zeros(2)
    mine.to("cuda")
    assert pinning.calls == [{}]
    torch.utils.data._utils.pin_memory.pin_memory(pinned)
    pinned.to("cuda")
    pinned.to("cuda", non_blocking=False)
    assert pinning.calls[1:] == [{"non_blocking": True}, {"non_blocking": False}]
    assert target.proof()["acted"]
    patches.undo()
    assert DataLoader(TensorDataset(torch.zeros(2))).pin_memory is False


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("ddp_unused_parameters", "find_unused_parameters", False),
        ("ddp_bucket_view", "gradient_as_bucket_view", True),
    ],
)
def test_models_on_ranks_get_the_argument(
    name: str, argument: str, value: bool, patches: Patches, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[dict[str, Any]] = []

    def init(
        _self: Any,
        _module: Any,
        find_unused_parameters: bool = False,
        gradient_as_bucket_view: bool = False,
    ) -> None:
        given = (find_unused_parameters, gradient_as_bucket_view)
        names = ("find_unused_parameters", "gradient_as_bucket_view")
        calls.append(dict(zip(names, given, strict=True)))

    monkeypatch.setattr(DistributedDataParallel, "__init__", init)
    target = put_on(name, value, patches)
    DistributedDataParallel(torch.nn.Linear(1, 1), **{argument: value})
    assert not target.proof()["acted"]
    DistributedDataParallel(torch.nn.Linear(1, 1), **{argument: not value})
    assert calls[-1][argument] is value
    assert target.proof()["acted"]
    patches.undo()
    DistributedDataParallel(torch.nn.Linear(1, 1), **{argument: not value})
    assert calls[-1][argument] is not value
