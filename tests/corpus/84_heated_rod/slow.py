"""Temperature in a heated rod by a physics-informed network.

u_t = k u_xx for 0 < x < 1, u = sin(pi x) at t = 0, u = 0 at x = 0 and a radiating end,
u_x = -h u, at x = 1. Points are drawn afresh at each step.
"""

import math
import time

import torch
from accelerate import Accelerator
from torch import nn

CONDUCTION, RADIATION = 0.2, 0.7


class Temperature(nn.Module):
    def __init__(self, width=96, depth=4):
        super().__init__()
        layers = [nn.Linear(2, width), nn.Tanh()]
        for _ in range(depth - 1):
            layers += [nn.Linear(width, width), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))

    def forward(self, tx):
        return self.net(tx).squeeze(1)


def residual(model, tx):
    tx = tx.requires_grad_(True)
    u = model(tx)
    first = torch.autograd.grad(u.sum(), tx, create_graph=True)[0]
    u_t, u_x = first[:, 0], first[:, 1]
    u_xx = torch.autograd.grad(u_x.sum(), tx, create_graph=True)[0][:, 1]
    return u_t - CONDUCTION * u_xx


def radiating_end(model, tx):
    tx = tx.requires_grad_(True)
    u = model(tx)
    u_x = []
    for k in range(len(tx)):
        u_x.append(torch.autograd.grad(u[k], tx, create_graph=True)[0][k, 1])
    return torch.stack(u_x) + RADIATION * u


def draw(inside=1600, edge=48):
    tx = torch.rand(inside, 2)
    start = torch.stack([torch.zeros(edge), torch.rand(edge)], 1)
    left = torch.stack([torch.rand(edge), torch.zeros(edge)], 1)
    right = torch.stack([torch.rand(edge), torch.ones(edge)], 1)
    return tx, start, left, right


def loss_terms(model):
    tx, start, left, right = draw()
    yield "equation", residual(model, tx).square().mean()
    yield "start", (model(start) - torch.sin(math.pi * start[:, 1])).square().mean()
    yield "left", model(left).square().mean()
    yield "right", radiating_end(model, right).square().mean()


def main(steps=500):
    accelerator = Accelerator(cpu=True)
    torch.manual_seed(97)
    model = Temperature()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    model, optimizer = accelerator.prepare(model, optimizer)
    since = time.time()
    for step in range(1, steps + 1):
        terms = dict(loss_terms(model))
        optimizer.zero_grad()
        accelerator.backward(sum(terms.values()))
        optimizer.step()
        if step % 50 == 0:
            words = " ".join(f"{k} {v.item():.5f}" for k, v in terms.items())
            rate = step / (time.time() - since)
            accelerator.print(f"step {step:4d} {words} {rate:.2f} it/s", flush=True)


if __name__ == "__main__":
    main()
