"""Copies between devices, on a machine that has none: tensors that claim to lie elsewhere."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from hotlap.sites import tensor_copy, tensor_read
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches
from hotlap.sites.tensor_copy import Move


class OnCuda(torch.Tensor):  # type: ignore[misc]  # torch is seen as Any
    """A tensor of the host that says it lies on a GPU."""

    device = property(lambda _: torch.device("cuda", 0))


class Pinned(torch.Tensor):  # type: ignore[misc]  # torch is seen as Any
    """A tensor of the host that says its memory is pinned."""

    def is_pinned(self, *_: Any) -> bool:
        return True


def on_cuda(*shape: int) -> Any:
    return torch.zeros(*shape).as_subclass(OnCuda)


class Heard:
    """A hub with one listener, and what it heard at the ends of calls."""

    def __init__(self) -> None:
        self.ends: list[Any] = []
        self.faults: list[str] = []
        self.token: Any = 1
        self.hub = Hub(lambda site, error: self.faults.append(f"{site}: {error}"))
        self.patches = Patches()

    def listen(self, name: str) -> None:
        self.hub.subscribe(name, lambda _: self.token, lambda _, subject: self.ends.append(subject))


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[Heard]:
    """Install the site as on a build of torch that knows a device."""
    monkeypatch.setattr(tensor_copy, "has_device_build", lambda _: True)
    listening = Heard()
    listening.listen("tensor_copy")
    tensor_copy.install(listening.hub, listening.patches)
    yield listening
    listening.patches.undo()


def wrapped(heard: Heard, result: Callable[..., Any], into: bool = False) -> Any:
    return tensor_copy._wrap(result, heard.hub.channel("tensor_copy"), torch, into)


def test_a_build_without_a_device_is_left_alone() -> None:
    build = torch.version.cuda or torch.version.hip or torch.backends.mps.is_built()
    assert tensor_copy.has_device_build(torch) == bool(build or getattr(torch.version, "xpu", None))
    heard = Heard()
    heard.listen("tensor_copy")
    before = torch.Tensor.to
    tensor_copy.install(heard.hub, heard.patches)
    assert (torch.Tensor.to is before) == (not tensor_copy.has_device_build(torch))
    heard.patches.undo()


def test_changes_of_type_and_copies_in_place_move_nothing(heard: Heard) -> None:
    source, target = torch.ones(3), torch.zeros(3)
    assert source.to(torch.float64).dtype == torch.float64
    assert source.to("cpu") is source
    assert source.to(torch.zeros(1, dtype=torch.int32)).dtype == torch.int32
    assert target.copy_(source) is target
    assert target.copy_(other=source * 2, non_blocking=True).tolist() == [2.0, 2.0, 2.0]
    assert source.to(device="meta").device.type == "meta"
    assert heard.ends == [None] * 6
    assert not heard.faults


def test_after_undoing_nothing_is_heard(heard: Heard) -> None:
    heard.patches.undo()
    torch.ones(3).to(torch.float64)
    assert heard.ends == []


@pytest.mark.parametrize(
    ("arguments", "named", "non_blocking"),
    [
        (("cuda",), {}, False),
        (("cuda", True), {}, True),
        (("cuda", torch.float16, True), {}, True),
        (("cuda", False, True), {}, False),
        ((0,), {}, False),
        ((1, True), {}, True),
        ((), {"device": "cuda", "non_blocking": True}, True),
        ((), {"device": "cuda", "non_blocking": False, "copy": True}, False),
    ],
)
def test_whether_the_call_waits(
    heard: Heard, arguments: tuple[Any, ...], named: dict[str, Any], non_blocking: bool
) -> None:
    to = wrapped(heard, lambda *_, **__: on_cuda(2))
    to(torch.zeros(2), *arguments, **named)
    assert heard.ends == [Move("cpu", "cuda", False, non_blocking, 8)]


def test_pinned_memory_on_either_side(heard: Heard) -> None:
    pinned: Any = torch.zeros(2, 3).as_subclass(Pinned)
    wrapped(heard, lambda *_: on_cuda(2, 3))(pinned, "cuda")
    wrapped(heard, lambda *_: pinned)(on_cuda(2, 3), "cpu", True)
    assert heard.ends == [
        Move("cpu", "cuda", True, False, 24),
        Move("cuda", "cpu", True, True, 24),
    ]


def test_copying_into_a_tensor_moves_the_argument(heard: Heard) -> None:
    copy = wrapped(heard, lambda self, *_, **__: self, into=True)
    copy(on_cuda(4), torch.zeros(4, dtype=torch.float64), True)
    copy(on_cuda(4), other=torch.zeros(4))
    copy(on_cuda(4), 5)
    assert heard.ends == [
        Move("cpu", "cuda", False, True, 32),
        Move("cpu", "cuda", False, False, 16),
        None,
    ]


def test_between_two_devices_nothing_is_pinned(heard: Heard) -> None:
    class Second(torch.Tensor):  # type: ignore[misc]  # torch is seen as Any
        device = property(lambda _: torch.device("cuda", 1))

    wrapped(heard, lambda *_: torch.zeros(2).as_subclass(Second))(on_cuda(2), "cuda:1")
    assert heard.ends == [Move("cuda", "cuda", None, False, 8)]


def test_sparse_tensors_have_no_plain_size(heard: Heard) -> None:
    wrapped(heard, lambda *_: on_cuda(2))(torch.eye(3).to_sparse(), "cuda")
    assert heard.ends == [Move("cpu", "cuda", None, False, None)]


def test_stand_ins_of_the_compiler_move_nothing(heard: Heard) -> None:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        fake = torch.empty(3)
        fake.to(torch.float64)
    moved = tensor_copy.move(torch, torch.zeros(3), fake, (), {})
    assert moved is None
    wrapped(heard, lambda *_: on_cuda(2))(fake, "cuda")
    assert set(heard.ends) == {None}
    assert not heard.faults


def test_nothing_is_asked_of_the_device_while_a_graph_is_captured(
    heard: Heard, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: True)
    wrapped(heard, lambda *_: on_cuda(2))(torch.zeros(2).as_subclass(Pinned), "cuda", True)
    assert heard.ends == [Move("cpu", "cuda", None, True, 8)]


def test_a_users_subclass_sees_what_it_would_see_alone(heard: Heard) -> None:
    seen: list[str] = []

    class Watching(torch.Tensor):  # type: ignore[misc]  # torch is seen as Any
        @classmethod
        def __torch_function__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(getattr(func, "__name__", str(func)))
            return super().__torch_function__(func, types, args, kwargs or {})

    tensor: Any = torch.ones(2).as_subclass(Watching)
    heard.patches.undo()
    tensor.to(torch.float64)
    alone, seen[:] = seen.copy(), []
    tensor_copy.install(heard.hub, heard.patches)
    result = tensor.to(torch.float64)
    assert seen == alone == ["to"]
    assert type(result) is Watching


def test_errors_are_the_users_own(heard: Heard) -> None:
    with pytest.raises(RuntimeError, match="nonsense") as caught:
        torch.ones(2).to("nonsense")
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files == [__file__]
    with pytest.raises(TypeError, match="copy_"):
        torch.ones(2).copy_("text")
    assert heard.ends == [None, None]


def test_a_fault_of_ours_costs_the_site_and_nothing_else(heard: Heard) -> None:
    hub = Hub(lambda site, _: heard.faults.append(site), faults=["tensor_copy.end"])
    hub.subscribe("tensor_copy", lambda _: 1, lambda *_: None)
    heard.patches.undo()
    tensor_copy.install(hub, heard.patches)
    assert torch.ones(2).to(torch.float64).tolist() == [1.0, 1.0]
    assert torch.ones(2).to(torch.int64).tolist() == [1, 1]
    assert heard.faults == ["tensor_copy"]


def test_compiled_code_stays_in_one_graph(heard: Heard) -> None:
    torch._dynamo.reset()

    def double(tensor: Any) -> Any:
        return tensor.to(torch.float64).mul(2)

    compiled = torch.compile(double, backend="eager", fullgraph=True)
    assert compiled(torch.ones(2)).tolist() == [2.0, 2.0]
    assert heard.ends == [None]  # the graph itself runs, once; tracing it is not heard
    assert not heard.faults


def test_reads_tell_the_device_that_they_wait_for() -> None:
    heard = Heard()
    heard.listen("tensor_read")
    tensor_read.install(heard.hub, heard.patches)
    try:
        torch.ones(1).item()
        tensor_read._wrap(lambda _: [0], "tolist", heard.hub, torch)(on_cuda(2))
        assert bool(torch.ones(1))
    finally:
        heard.patches.undo()
    assert heard.ends == [("item", "cpu"), ("tolist", "cuda"), ("bool", "cpu")]
    assert not heard.faults
