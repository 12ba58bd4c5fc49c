"""What knobs do in a training process: they act, say so, and are undone."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from hotlap.knobs.target import Target
from hotlap.sites.patches import Patches
from unit.knobs.cases import put_on


def model() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(4, 2)


def has_acted(target: Target) -> bool:
    return bool(target.proof()["acted"])


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_anomaly_mode_stays_off(patches: Patches) -> None:
    target = put_on("anomaly_mode", False, patches)
    assert not has_acted(target)
    torch.autograd.set_detect_anomaly(True)
    assert not torch.is_anomaly_enabled()
    with torch.autograd.detect_anomaly(check_nan=False):
        assert not torch.is_anomaly_enabled()
    assert has_acted(target)
    patches.undo()
    with torch.autograd.set_detect_anomaly(True):
        assert torch.is_anomaly_enabled()


def test_denormals_are_flushed(patches: Patches) -> None:
    tiny = torch.tensor([1e-39])
    target = put_on("flush_denormal", True, patches)
    if not has_acted(target):
        pytest.skip("this processor has no such switch")
    assert float(tiny * 0.5) == 0.0
    patches.undo()
    assert float(tiny * 0.5) != 0.0


def test_threads_are_set_whatever_the_script_asks(patches: Patches) -> None:
    before = torch.get_num_threads()
    target = put_on("intra_op_threads", before + 1, patches)
    assert torch.get_num_threads() == before + 1
    torch.set_num_threads(before + 3)
    assert torch.get_num_threads() == before + 1
    assert has_acted(target)
    patches.undo()
    assert torch.get_num_threads() == before
    assert not has_acted(put_on("intra_op_threads", before, patches))


def test_precision_is_set_and_set_back(patches: Patches) -> None:
    target = put_on("matmul_precision", "high", patches)
    torch.set_float32_matmul_precision("medium")
    assert torch.get_float32_matmul_precision() == "high"
    assert has_acted(target)
    patches.undo()
    assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize(
    ("name", "argument"), [("fused_optimizer", "fused"), ("foreach_optimizer", "foreach")]
)
def test_optimizers_are_made_with_the_argument(name: str, argument: str, patches: Patches) -> None:
    target = put_on(name, True, patches)
    torch.optim.LBFGS(model().parameters())
    assert not has_acted(target)
    made = torch.optim.AdamW(model().parameters(), lr=0.1)
    assert made.param_groups[0][argument] is True
    assert has_acted(target)
    patches.undo()
    assert torch.optim.AdamW(model().parameters()).param_groups[0][argument] is None


def trained(set_to_none: bool) -> list[torch.Tensor]:
    """Return weights after steps in which every second one leaves a layer without gradients."""
    torch.manual_seed(0)
    layers = torch.nn.ModuleList(torch.nn.Linear(3, 3) for _ in range(2))
    optimizer = torch.optim.AdamW(layers.parameters(), lr=0.1)
    for step in range(6):
        optimizer.zero_grad(set_to_none=set_to_none)
        layers[step % 2](torch.ones(2, 3)).sum().backward()
        optimizer.step()
    return [one.detach() for one in layers.parameters()]


def test_dropped_gradients_leave_every_update_as_it_was(patches: Patches) -> None:
    zeros, dropping = trained(False), trained(True)
    assert not all(torch.equal(a, b) for a, b in zip(zeros, dropping, strict=True))
    target = put_on("zero_grad_to_none", True, patches)
    assert all(torch.equal(a, b) for a, b in zip(zeros, trained(False), strict=True))
    assert has_acted(target)
    patches.undo()
    layer = model()
    layer(torch.ones(1, 4)).sum().backward()
    torch.optim.SGD(layer.parameters(), lr=0.1).zero_grad(set_to_none=False)
    assert layer.weight.grad is not None


def test_a_script_that_drops_gradients_is_left_alone(patches: Patches) -> None:
    target = put_on("zero_grad_to_none", True, patches)
    assert all(torch.equal(a, b) for a, b in zip(trained(True), trained(True), strict=True))
    assert not has_acted(target)


def test_attention_returns_no_weights(patches: Patches) -> None:
    attention, x = torch.nn.MultiheadAttention(8, 2), torch.ones(3, 1, 8)
    target = put_on("attention_weights", False, patches)
    assert attention(x, x, x, need_weights=False)[1] is None
    assert not has_acted(target)
    assert attention(x, x, x)[1] is None
    assert has_acted(target)
    assert attention(query=x, key=x, value=x, need_weights=True)[1] is None
    patches.undo()
    assert attention(x, x, x)[1] is not None


def test_evaluation_records_no_graph(patches: Patches) -> None:
    own, other = model(), model()
    target = put_on("evaluation_without_grad", True, patches, evaluates=lambda one: one is own)
    assert other(torch.ones(1, 4)).requires_grad
    assert not has_acted(target)
    assert not own(torch.ones(1, 4)).requires_grad
    assert has_acted(target)
    patches.undo()
    assert own(torch.ones(1, 4)).requires_grad


@pytest.mark.parametrize("value", ["freeze", "disable"])
def test_the_collector_is_held_back_after_the_first_step(value: str, patches: Patches) -> None:
    target = put_on("gc_control", value, patches)
    assert not has_acted(target)
    target.stepped()
    try:
        assert gc.isenabled() is (value == "freeze")
        assert gc.get_freeze_count() > 0
        assert has_acted(target)
    finally:
        patches.undo()
    assert gc.isenabled()
    assert gc.get_freeze_count() == 0


def test_worker_threads_leave_the_training_process_alone(patches: Patches) -> None:
    before = torch.get_num_threads()
    target = put_on("worker_threads", 1, patches)
    torch.set_num_threads(before + 1)
    assert torch.get_num_threads() == before + 1
    assert not has_acted(target)
    torch.set_num_threads(before)


class Asking:
    """A data set that says how many threads its worker uses, after asking for three."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, index: int) -> int:
        torch.set_num_threads(3)
        return int(torch.get_num_threads())


def test_worker_threads_hold_in_workers(patches: Patches) -> None:
    put_on("worker_threads", 1, patches)
    assert [int(one) for one in DataLoader(Asking(), num_workers=1)] == [1, 1]


class Stream(IterableDataset):  # type: ignore[misc]  # torch is not typed here
    """A stream that does not share itself out."""

    def __iter__(self) -> Any:
        return iter(range(4))


DATA = TensorDataset(torch.arange(8))


@pytest.mark.parametrize(
    ("name", "value", "attribute"),
    [("prefetch_depth", 4, "prefetch_factor"), ("persistent_workers", True, "persistent_workers")],
)
def test_loaders_with_workers_get_the_argument(
    name: str, value: Any, attribute: str, patches: Patches
) -> None:
    target = put_on(name, value, patches)
    assert getattr(DataLoader(DATA), attribute) != value
    assert not has_acted(target)
    assert "without workers" in target.proof()["proof"]
    assert getattr(DataLoader(DATA, num_workers=1), attribute) == value
    assert has_acted(target)
    patches.undo()
    assert getattr(DataLoader(DATA, num_workers=1), attribute) != value


def test_all_loaders_but_streams_get_workers(patches: Patches) -> None:
    target = put_on("loader_workers", 2, patches)
    assert DataLoader(Stream()).num_workers == 0
    assert not has_acted(target)
    assert DataLoader(DATA).num_workers == 2
    assert has_acted(target)
    patches.undo()
    assert DataLoader(DATA).num_workers == 0


def test_without_workers_nothing_is_left_that_needs_them(patches: Patches) -> None:
    put_on("loader_workers", 0, patches)
    made = DataLoader(DATA, num_workers=2, prefetch_factor=4, persistent_workers=True)
    assert (made.num_workers, made.prefetch_factor, made.persistent_workers) == (0, None, False)


def orders(workers: int, generator: torch.Generator | None = None) -> list[list[int]]:
    """Return the samples of three epochs in their order, with random numbers drawn between."""
    torch.manual_seed(7)
    loader = DataLoader(DATA, shuffle=True, num_workers=workers, generator=generator)
    found = []
    for _ in range(3):
        found.append([int(x) for (x,) in loader])
        found.append([int(torch.randint(1000, ()))])
    return found


def own_generator(kind: str) -> torch.Generator | None:
    return torch.Generator().manual_seed(3) if kind == "own generator" else None


@pytest.mark.parametrize("kind", ["default", "own generator"])
def test_orders_stay_the_same_with_workers_and_with_workers_that_stay(
    kind: str, patches: Patches
) -> None:
    plain = orders(0, own_generator(kind))
    assert plain[0] != plain[2]
    with_workers = orders(2, own_generator(kind))
    assert with_workers == plain
    target = put_on("persistent_workers", True, patches)
    assert orders(2, own_generator(kind)) == plain
    assert has_acted(target)
    put_on("loader_workers", 2, patches)
    assert orders(0, own_generator(kind)) == plain
