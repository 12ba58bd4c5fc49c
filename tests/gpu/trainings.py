"""A small convolutional net and a small transformer, each with its loader and its step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

KINDS = ("cnn", "transformer")
SEED = 20240229


class Attention(nn.Module):  # type: ignore[misc]  # torch has no types here
    """A block of a transformer, in float32 as most scripts leave it."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.merge = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mix = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, t, w = x.shape
        q, k, v = self.qkv(self.before(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.merge(mixed.transpose(1, 2).reshape(b, t, w))
        found: torch.Tensor = x + self.mix(self.after(x))
        return found


def _model(kind: str, width: int) -> nn.Module:
    if kind == "transformer":
        blocks = [Attention(width, 8) for _ in range(4)]
        return nn.Sequential(nn.Embedding(256, width), *blocks, nn.Linear(width, 256))
    layers: list[nn.Module] = []
    for before, after in ((3, width // 4), (width // 4, width // 2), (width // 2, width)):
        layers += [nn.Conv2d(before, after, 3, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        layers += [nn.MaxPool2d(2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 10))


def _rows(kind: str, count: int, size: int) -> TensorDataset:
    if kind == "transformer":
        ids = torch.randint(256, (count, size + 1))
        return TensorDataset(ids[:, :-1].clone(), ids[:, 1:].clone())
    return TensorDataset(torch.randn(count, 3, size, size), torch.randint(10, (count,)))


class Training:
    """A seeded training. width, size, batch: of the model, of a sample, of a batch."""

    def __init__(
        self, kind: str, device: str, width: int = 256, size: int = 64, batch: int = 32
    ) -> None:
        torch.manual_seed(SEED)
        self.device = device
        self.model = _model(kind, width).to(device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        self.loader = DataLoader(_rows(kind, 4 * batch, size), batch, shuffle=False)
        self._batches = self._endless()

    def _endless(self) -> Iterator[Any]:
        while True:
            yield from self.loader

    def step(self) -> torch.Tensor:
        """Make one step and return its loss, which nothing has waited for."""
        x, y = next(self._batches)
        x, y = x.to(self.device), y.to(self.device)
        self.optimizer.zero_grad()
        loss: torch.Tensor = F.cross_entropy(self.model(x).flatten(0, -2), y.flatten())
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def losses(self, steps: int) -> list[float]:
        """Return the losses of so many steps."""
        return [float(one) for one in [self.step() for _ in range(steps)]]
