"""A training on the CPU whose torch says that it has a GPU: run by test_device_whole.

argv: the run directory. ``torch.cuda`` is replaced where the probe touches it; everything else,
sites and recorder included, is real.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import torch

from hotlap.inject.session import Session
from unit.probe.device_fakes import US, FakeCuda, parameter

STEPS = 80


CUDA = FakeCuda()


class OnCuda(torch.nn.Linear):  # type: ignore[misc]  # torch is seen as Any
    """A layer that sends kernels, and says that its parameters lie on the GPU."""

    def parameters(self, recurse: bool = True) -> Any:  # noqa: ARG002 - torch's signature
        return iter((parameter(),))

    def forward(self, batch: Any) -> Any:
        CUDA.launch(300 * US)
        result = super().forward(batch)
        result.register_hook(lambda _: CUDA.launch(600 * US))
        return result


class Descent(torch.optim.SGD):  # type: ignore[misc]  # torch is seen as Any
    """An optimizer that sends a kernel."""

    def step(self, closure: Any = None) -> Any:
        CUDA.launch(100 * US)
        return super().step(closure)


def pretend(cuda: FakeCuda) -> None:
    torch.version.cuda = "12.8"
    for name in ("is_initialized", "is_current_stream_capturing", "current_stream", "Event"):
        setattr(torch.cuda, name, getattr(cuda, name))
    torch.cuda.synchronize = cuda.synchronize
    torch.cuda.get_device_name = lambda: "Simulated"
    torch.cuda.current_device = lambda: 0


def train() -> None:
    model = OnCuda(4, 1)
    optimizer = Descent(list(torch.nn.Module.parameters(model)), lr=0.01)
    for _ in range(STEPS):
        batch = torch.ones(2, 4).to(torch.float32)
        model(batch).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        CUDA.now = CUDA.streams[0].free_at


def main() -> None:
    pretend(CUDA)
    session = Session(Path(sys.argv[1]), str(Path(__file__).parent))
    session.begin()
    train()
    session.end()
    print(sum(CUDA.calls.values()))


if __name__ == "__main__":
    main()
