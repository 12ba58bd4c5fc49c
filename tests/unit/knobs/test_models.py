"""Knobs that act on whole forward passes: compile, channels_last, autocast."""

from __future__ import annotations

import contextlib
import copy
from typing import Any

import pytest
import torch
from torch._functorch import config as functorch

from hotlap.knobs import compile as compiling
from hotlap.sites.patches import Patches
from unit.knobs.cases import put_on


class Net(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    """A model of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.Sequential(
            torch.nn.Linear(4, 4), torch.nn.Dropout(0.5), torch.nn.Linear(4, 2)
        )
        self.runs = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(self.layers(x))


def container() -> torch.nn.Module:
    return Net().layers


X = torch.ones(3, 4)


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Compile to graphs, but make no kernels of them: that takes a minute."""
    import torch._dynamo

    monkeypatch.setattr(compiling, "BACKEND", "eager")
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def out(model: Any, x: torch.Tensor = X) -> torch.Tensor:
    torch.manual_seed(1)
    return model(x)


@pytest.mark.usefixtures("eager")
@pytest.mark.parametrize("make", [Net, container])
def test_a_model_is_compiled_and_stays_what_it_is(make: Any, patches: Patches) -> None:
    model = make()
    expected, keys = out(model), list(model.state_dict())
    target = put_on("compile", "default", patches)
    model.eval()
    out(model)
    with torch.no_grad():
        out(model.train())
    assert not target.proof()["acted"]
    assert torch.equal(out(model), expected)
    assert target.proof()["acted"]
    assert "1 graph" in target.proof()["proof"]
    assert torch.equal(out(model), expected)
    assert target.proof()["times"] == 1
    assert list(model.state_dict()) == keys
    assert type(model) is type(make())
    other = copy.deepcopy(model)
    with torch.no_grad():
        next(other.parameters()).add_(1.0)
    assert not torch.equal(out(other), expected)
    patches.undo()
    assert torch.equal(out(model), expected)


@pytest.mark.usefixtures("eager")
def test_gradients_are_the_same(patches: Patches) -> None:
    plain, compiled = Net(), Net()
    out(plain).sum().backward()
    put_on("compile", "default", patches)
    out(compiled).sum().backward()
    for one, other in zip(plain.parameters(), compiled.parameters(), strict=True):
        assert torch.equal(one.grad, other.grad)


@pytest.mark.usefixtures("eager")
def test_a_graph_can_be_kept_for_a_second_backward_pass(
    patches: Patches, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compiling, "BACKEND", "aot_eager")
    model, plain = Net(), Net()
    target = put_on("compile", "default", patches)
    loss = out(model).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    assert target.proof()["acted"]
    patches.undo()
    loss = out(plain).sum()
    loss.backward(retain_graph=True)
    loss.backward()
    for one, other in zip(plain.parameters(), model.parameters(), strict=True):
        assert torch.allclose(one.grad, other.grad)
    assert functorch.donated_buffer is True


def test_a_model_that_the_compiler_refuses_runs_as_before(
    patches: Patches, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch._dynamo.exc

    def refuse(*_: Any, **__: Any) -> Any:
        def call(*_: Any, **__: Any) -> Any:
            raise torch._dynamo.exc.Unsupported("not this one")

        return call

    model = Net()
    expected = out(model)
    monkeypatch.setattr(torch, "compile", refuse)
    target = put_on("compile", "default", patches)
    assert torch.equal(out(model), expected)
    assert not target.proof()["acted"]
    assert "not this one" in target.proof()["proof"]


@pytest.mark.usefixtures("eager")
def test_an_error_of_the_models_is_its_own(patches: Patches) -> None:
    put_on("compile", "default", patches)
    with pytest.raises(RuntimeError):
        out(Net(), torch.ones(3, 5))


@pytest.mark.usefixtures("eager")
def test_a_script_that_compiles_is_only_made_dynamic(patches: Patches) -> None:
    target = put_on("compile", "default", patches)
    model = torch.compile(Net(), backend="eager")
    out(model)
    assert not target.proof()["acted"]
    assert "by itself" in target.proof()["proof"]
    patches.undo()
    target = put_on("compile", "dynamic", patches)
    torch.compile(Net(), backend="eager", dynamic=True)
    assert not target.proof()["acted"]
    model = torch.compile(Net(), backend="eager", dynamic=False)
    assert target.proof()["acted"]
    graphs = compiling._graphs()
    for rows in (2, 3, 4, 5):
        out(model, torch.ones(rows, 4))
    assert compiling._graphs() == graphs + 1


def test_results_of_autocast_come_back_in_float32(patches: Patches) -> None:
    model = Net().eval()
    full = model(X)
    target = put_on("autocast", "bfloat16", patches)
    assert not target.proof()["acted"]
    given = model(X)
    assert given.dtype == torch.float32
    assert not torch.equal(given, full)
    assert torch.allclose(given, full, atol=1e-2)
    assert target.proof()["acted"]
    given.sum().backward()
    assert next(model.parameters()).grad.dtype == torch.float32
    patches.undo()
    assert torch.equal(model(X), full)


def test_autocast_leaves_a_precision_of_the_scripts_alone(patches: Patches) -> None:
    target = put_on("autocast", "bfloat16", patches)
    Net().double()(X.double())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert Net().eval().layers(X).dtype == torch.bfloat16
    torch.nn.MSELoss()(X, X)
    assert not target.proof()["acted"]


class Outputs(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    """Returns and takes containers of all kinds."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.Linear(4, 2)

    def forward(self, held: dict[str, Any], seen: list[int]) -> Any:
        seen.append(1)
        y = self.layer(held["x"])
        return {"y": y, "many": (y, [y, None]), "name": "out"}, held


def test_containers_are_looked_into_and_the_scripts_own_left_as_they_are(patches: Patches) -> None:
    put_on("autocast", "bfloat16", patches)
    held: dict[str, Any] = {"x": X}
    seen: list[int] = []
    found, again = Outputs()(held, seen)
    assert again is held
    assert seen == [1]
    tensors = [found["y"], found["many"][0], found["many"][1][0]]
    assert {one.dtype for one in tensors} == {torch.float32}
    assert found["many"][1][1] is None


def convolutions(last: Any = None) -> torch.nn.Module:
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 8, 3), torch.nn.BatchNorm2d(8), torch.nn.Conv2d(8, 4, 3)]
    return torch.nn.Sequential(*layers, last or torch.nn.Flatten())


class Views(torch.nn.Module):  # type: ignore[misc]  # torch is not typed here
    """Looks at the order in memory."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1)


PICTURES = torch.rand(2, 3, 8, 8)


def test_convolutions_get_another_memory_format(patches: Patches) -> None:
    model = convolutions()
    expected = model(PICTURES)
    weight = model[2].weight
    target = put_on("channels_last", True, patches)
    Net()(X)
    assert not target.proof()["acted"]
    assert "no net of convolutions" in target.proof()["proof"]
    given = model(PICTURES)
    assert target.proof()["acted"]
    assert torch.allclose(given, expected, atol=1e-5)
    assert model[2].weight is weight
    assert weight.is_contiguous(memory_format=torch.channels_last)
    assert not weight.is_contiguous()
    patches.undo()
    assert weight.is_contiguous()


def test_a_model_that_cannot_take_the_format_is_as_it_was(patches: Patches) -> None:
    plain, model = convolutions(Views()), convolutions(Views())
    expected = plain(PICTURES)
    target = put_on("channels_last", True, patches)
    assert torch.equal(model(PICTURES), expected)
    assert not target.proof()["acted"]
    assert "cannot take it" in target.proof()["proof"]
    for one, other in zip(plain.buffers(), model.buffers(), strict=True):
        assert torch.equal(one, other)
    with contextlib.suppress(RuntimeError):
        model(torch.rand(2, 5, 8, 8))
    assert model[0].weight.is_contiguous()
