"""Recognise people by their gait: norm-preserving recurrent network on accelerometer windows."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize


@dataclass(frozen=True)
class Settings:
    people: int = 16
    channels: int = 12
    length: int = 40
    hidden: int = 64
    batch_size: int = 128
    steps: int = 200
    lr: float = 2e-3
    seed: int = 80


def walks(settings: Settings, count: int = 4000) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(settings.seed)
    person = torch.randint(settings.people, (count,), generator=generator)
    stride = torch.linspace(0.5, 1.5, settings.people)[person]
    lean = torch.randn(settings.people, settings.channels, generator=generator)[person]
    t = torch.arange(settings.length).float()
    start = 6.28 * torch.rand(count, 1, generator=generator)
    wave = torch.sin(0.6 * stride[:, None] * t + start)
    x = wave[:, :, None] * lean[:, None, :]
    return x + 0.5 * torch.randn(x.shape, generator=generator), person


class ModReLU(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return torch.sign(x) * torch.relu(x.abs() + self.bias)


class Cell(nn.Module):
    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.turn = parametrizations.orthogonal(nn.Linear(hidden, hidden, bias=False))
        self.squash = ModReLU(hidden)

    def forward(self, state: Tensor, drive: Tensor) -> Tensor:
        return self.squash(self.turn(state) + drive)


class GaitNet(nn.Module):
    def __init__(self, settings: Settings) -> None:
        super().__init__()
        self.drive = nn.Sequential(
            nn.Linear(settings.channels, 256), nn.ReLU(), nn.Linear(256, settings.hidden)
        )
        self.cell = Cell(settings.hidden)
        self.out = nn.Linear(settings.hidden, settings.people)

    def forward(self, x: Tensor) -> Tensor:
        drive = self.drive(x)
        state = drive.new_zeros(len(x), drive.shape[-1])
        with parametrize.cached():
            for t in range(drive.shape[1]):
                state = self.cell(state, drive[:, t])
        return self.out(state)

    @torch.no_grad()
    def orthogonality(self) -> float:
        weight = self.cell.turn.weight
        return (weight @ weight.T - torch.eye(len(weight))).abs().max().item()


def main() -> None:
    settings = Settings()
    torch.manual_seed(settings.seed)
    x, person = walks(settings)
    model = GaitNet(settings)
    assert parametrize.is_parametrized(model.cell.turn)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=settings.lr)
    began = time.perf_counter()
    for step in range(1, settings.steps + 1):
        index = torch.randint(len(x), (settings.batch_size,))
        logits = model(x[index])
        loss = nn.functional.cross_entropy(logits, person[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            hits = (logits.argmax(1) == person[index]).float().mean().item()
            rate = step / (time.perf_counter() - began)
            print(f"step {step} loss {loss.item():.3f} hits {hits:.2f} {rate:.2f} steps/s", flush=True)
    print(f"departure from orthogonal {model.orthogonality():.1e}")


if __name__ == "__main__":
    main()
