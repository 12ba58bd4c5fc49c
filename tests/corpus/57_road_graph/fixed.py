"""Speeds on a network of roads, some steps ahead."""

import time

import numpy as np
import torch
from torch import nn

ROADS, HISTORY, HORIZON = 110, 12, 10


def network(seed=60):
    """A planar-ish graph: roads near to each other are connected."""
    rng = np.random.default_rng(seed)
    place = rng.random((ROADS, 2))
    distance = np.linalg.norm(place[:, None] - place[None], axis=2)
    weight = np.exp(-(distance**2) / 0.01) * (distance < 0.2)
    np.fill_diagonal(weight, 0)
    return torch.tensor(weight, dtype=torch.float32)


def speeds(weight, steps, seed=61):
    generator = torch.Generator().manual_seed(seed)
    smooth = weight / weight.sum(1, keepdim=True).clamp(min=1e-6)
    state, rows = torch.randn(ROADS, generator=generator), []
    for t in range(steps):
        noise = 0.2 * torch.randn(ROADS, generator=generator)
        state = 0.9 * (0.6 * state + 0.4 * smooth @ state) + noise
        rows.append(state + np.sin(2 * np.pi * t / 96))
    return torch.stack(rows)


class GraphMixer(nn.Module):
    def __init__(self, weight, width=32):
        super().__init__()
        self.register_buffer("weight", weight)
        self.enter = nn.Linear(HISTORY, width)
        self.mix = nn.ModuleList(nn.Linear(2 * width, width) for _ in range(2))
        self.leave = nn.Linear(width, 1)
        self.register_buffer("matrix", self.propagation())

    def propagation(self, scale=0.5):
        """Heat kernel of the normalised graph Laplacian."""
        degree = self.weight.sum(1).clamp(min=1e-6).rsqrt()
        laplacian = torch.eye(ROADS) - degree[:, None] * self.weight * degree
        value, vector = torch.linalg.eigh(laplacian)
        return vector @ torch.diag(torch.exp(-scale * value)) @ vector.T

    def forward(self, history):
        matrix = self.matrix
        h = torch.relu(self.enter(history))
        for layer in self.mix:
            h = h + torch.relu(layer(torch.cat([h, matrix @ h], dim=2)))
        return history[..., -1] + self.leave(h).squeeze(2)


@torch.no_grad()
def rollout(model, days, begins):
    """Mean error when the model's own forecasts are fed back."""
    history = torch.stack([days[b : b + HISTORY].T for b in begins])
    errors = []
    for ahead in range(HORIZON):
        following = model(history)
        truth = torch.stack([days[b + HISTORY + ahead] for b in begins])
        errors.append((following - truth).abs().mean().item())
        history = torch.cat([history[..., 1:], following[..., None]], dim=2)
    return sum(errors) / HORIZON


def main(steps=400, batch=16):
    torch.manual_seed(60)
    weight = network()
    days = speeds(weight, 1500)
    train, valid = days[:1100], days[1100:]
    model = GraphMixer(weight)
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    begins = torch.arange(0, len(valid) - HISTORY - HORIZON, 6).tolist()
    start = time.time()
    for step in range(1, steps + 1):
        first = torch.randint(len(train) - HISTORY, (batch,)).tolist()
        history = torch.stack([train[b : b + HISTORY].T for b in first])
        target = torch.stack([train[b + HISTORY] for b in first])
        loss = nn.functional.l1_loss(model(history), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            score = rollout(model, valid, begins)
            print(f"step {step} loss {loss.item():.4f} rollout {score:.4f}", flush=True)
    print(f"done in {time.time() - start:.1f}")


if __name__ == "__main__":
    main()
