"""TorchScript knows some functions by their ids: ours are as good, and gone when undone."""

import pytest
import torch

from hotlap.sites import autograd
from hotlap.sites.hub import Hub
from hotlap.sites.patches import Patches

# No annotations from the future: TorchScript reads them as they stand.


def gradient(values: torch.Tensor) -> torch.Tensor:
    loss = (values * values).sum()
    found = torch.autograd.grad([loss], [values])[0]
    assert found is not None
    return found


@pytest.mark.parametrize("earlier", [False, True])
def test_autograd_can_be_scripted_while_it_is_watched(earlier: bool) -> None:
    script = torch.jit._builtins
    if earlier:
        torch.jit.script(gradient)
    listed = len(script._builtin_ops)
    failed: list[BaseException] = []
    hub, patches = Hub(lambda _, error: failed.append(error)), Patches()
    hub.subscribe("backward")
    autograd.install(hub, patches)
    try:
        ours = torch.autograd.grad
        scripted = torch.jit.script(gradient)
        values = torch.tensor([1.0, 3.0], requires_grad=True)
        assert scripted(values).tolist() == [2.0, 6.0]
    finally:
        patches.undo()
    assert failed == []
    assert torch.autograd.grad is not ours
    assert script._find_builtin(ours) is None
    assert script._find_builtin(torch.autograd.grad) == "aten::grad"
    assert not earlier or len(script._builtin_ops) == listed
