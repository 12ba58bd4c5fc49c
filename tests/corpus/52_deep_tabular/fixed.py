"""Predict the yield of a chemical process from 96 sensors."""

import argparse
import math
import time

import torch
from torch import nn

SENSORS = 96


class Layer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.a, self.b = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        return x + self.b(torch.relu(self.a(self.norm(x))))


class Yield(nn.Module):
    def __init__(self, width=160, depth=16):
        super().__init__()
        self.first = nn.Linear(SENSORS, width)
        self.layers = nn.Sequential(*[Layer(width) for _ in range(depth)])
        self.last = nn.Linear(width, 1)

    def forward(self, x):
        return self.last(self.layers(self.first(x))).squeeze(1)


@torch.no_grad()
def clip(model, limit):
    """Bring the total norm of the gradients below the limit; returns what it was."""
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit).item()
    if not math.isfinite(norm):
        raise FloatingPointError("gradient is not finite")
    return norm


def process(count, seed=55):
    generator = torch.Generator().manual_seed(seed)
    hidden = torch.randn(count, 6, generator=generator)
    x = hidden @ torch.randn(6, SENSORS, generator=generator)
    x = x + 0.3 * torch.randn(count, SENSORS, generator=generator)
    y = torch.tanh(hidden[:, 0] * hidden[:, 1]) + 0.5 * hidden[:, 2]
    return x / 2.5, y


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--limit", type=float, default=1.0)
    args = parser.parse_args()

    torch.manual_seed(55)
    x, y = process(20_000)
    model = Yield()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    start, norms = time.time(), []
    for step in range(1, args.steps + 1):
        pick = torch.randint(len(x), (args.batch,))
        loss = nn.functional.mse_loss(model(x[pick]), y[pick])
        optimizer.zero_grad()
        loss.backward()
        norms.append(clip(model, args.limit))
        optimizer.step()
        if step % 50 == 0:
            norm = sum(norms[-50:]) / 50
            print(f"{step} loss {loss.item():.4f} norm {norm:.3f} {time.time() - start:.1f}s")


if __name__ == "__main__":
    main()
