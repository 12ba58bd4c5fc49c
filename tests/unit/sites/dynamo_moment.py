"""Says what stands in torch's places before, while and after Dynamo is used; argument: a folder."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch

from hotlap.inject.session import Session
from hotlap.sites import dynamo_frames

session = Session(Path(sys.argv[1]), sys.argv[1])
before = torch.nn.Module.__call__, torch.Tensor.item, torch.autograd.grad
session.begin()

from torch.autograd import grad  # noqa: E402 - as a script of a user's does, after hotlap came in
from torch.optim import optimizer as place  # noqa: E402


def kinds() -> list[str]:
    """Return the kinds of what stands in torch's places, and in this module."""
    found: list[Any] = [torch.nn.Module.__call__, vars(torch.Tensor)["item"], torch.autograd.grad]
    found += [*place._global_optimizer_pre_hooks.values()]
    found += [*place._global_optimizer_post_hooks.values(), grad]
    return [type(one).__name__ for one in found]


def square(x: Any) -> Any:
    """Return the square."""
    return x * x


model = torch.nn.Linear(2, 1)
told = {"begun": kinds()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    optimizer.zero_grad()
    model(torch.ones(2)).sum().backward()
    optimizer.step()
import torch._dynamo.testing  # noqa: E402

for name in dynamo_frames.MODULES:  # as the door would
    session.imported(name)
told["imported"] = kinds()
graphs = torch._dynamo.testing.CompileCounter()
compiled = torch.compile(square, backend=graphs, fullgraph=True)
told["made"] = kinds()
assert compiled(torch.tensor(3.0)).item() == 9.0
told["traced"] = kinds()
again = torch.compile(model, backend=graphs, fullgraph=True)
again(torch.ones(2))
told["graphs"] = [str(graphs.frame_count)]
told["left"] = [type(torch._dynamo.utils.unpatched_nn_module_call).__name__]
session.end()
after = torch.nn.Module.__call__, torch.Tensor.item, torch.autograd.grad
told["undone"] = [str(one is other) for one, other in zip(before, after, strict=True)]
told["undone"].append(str(hasattr(torch._dynamo.output_graph.OutputGraph.__init__, "__wrapped__")))
told["faults"] = [str(session.recorder.recording.lost)]
print(json.dumps(told))
