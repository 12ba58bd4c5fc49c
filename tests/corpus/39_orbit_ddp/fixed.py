"""Kepler orbits from noisy observations; gradients are averaged by hand.

torchrun --nproc-per-node 2 slow.py
"""

import argparse
import time

import torch
import torch.distributed as dist
from torch import nn

POINTS = 20


def orbits(count, generator):
    """Observed positions (noisy, shuffled in time) and the five elements behind them."""
    elements = torch.rand(count, 5, generator=generator)
    axis = 0.5 + elements[:, :1]
    eccentric = 0.6 * elements[:, 1:2]
    turn = 6.28 * elements[:, 2:3]
    anomaly = 6.28 * (elements[:, 3:4] + torch.rand(count, POINTS, generator=generator))
    anomaly = anomaly + eccentric * torch.sin(anomaly)
    radius = axis * (1 - eccentric**2) / (1 + eccentric * torch.cos(anomaly))
    x = radius * torch.cos(anomaly + turn)
    y = radius * torch.sin(anomaly + turn) * torch.cos(elements[:, 4:5])
    seen = torch.cat([x, y], dim=1)
    return seen + 0.01 * torch.randn(seen.shape, generator=generator), elements


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.lift = nn.Linear(width, 2 * width)
        self.drop = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.drop(torch.tanh(self.lift(self.norm(x))))


class OrbitNet(nn.Module):
    def __init__(self, width=48, depth=40):
        super().__init__()
        self.first = nn.Linear(2 * POINTS, width)
        self.blocks = nn.Sequential(*[Residual(width) for _ in range(depth)])
        self.last = nn.Linear(width, 5)

    def forward(self, x):
        return torch.sigmoid(self.last(self.blocks(self.first(x))))


def average_gradients(model, world):
    gradients = [parameter.grad for parameter in model.parameters()]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    parts = (flat / world).split([gradient.numel() for gradient in gradients])
    for gradient, part in zip(gradients, parts, strict=True):
        gradient.copy_(part.view_as(gradient))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=250)
    parser.add_argument("--batch", type=int, default=256)
    args = parser.parse_args()

    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    generator = torch.Generator().manual_seed(100 + rank)
    torch.manual_seed(0)
    seen, elements = orbits(20_000, generator)
    model = OrbitNet()
    for parameter in model.parameters():
        dist.broadcast(parameter.data, src=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    began = time.perf_counter()
    for step in range(args.steps):
        pick = torch.randint(len(seen), (args.batch,), generator=generator)
        loss = nn.functional.mse_loss(model(seen[pick]), elements[pick])
        optimizer.zero_grad()
        loss.backward()
        average_gradients(model, world)
        optimizer.step()
        if rank == 0 and step % 50 == 0:
            print(f"step {step}: {loss.item():.5f}", flush=True)
    if rank == 0:
        print(f"train time {time.perf_counter() - began:.2f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
