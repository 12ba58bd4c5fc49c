"""Learn the next state of a two-dimensional flow from its present state."""

import os
import random
import time

import numpy as np
import torch
from torch import nn

SEED = 37
os.environ["PYTHONHASHSEED"] = str(SEED)
random.seed(SEED)
np.random.seed(SEED)
torch.manual_seed(SEED)
torch.use_deterministic_algorithms(True)
torch.set_num_threads(1)

GRID, FIELDS = 24, 2


def simulate(runs, steps):
    """Advection and diffusion of two fields on a periodic grid."""
    rng = np.random.default_rng(SEED)
    state = rng.normal(0, 1, (runs, FIELDS, GRID, GRID)).astype(np.float32)
    for _ in range(3):
        state = (state + np.roll(state, 1, 2) + np.roll(state, 1, 3) + np.roll(state, -1, 3)) / 3
    wind = rng.uniform(-0.3, 0.3, (runs, 2, 1, 1, 1)).astype(np.float32)
    states = [state]
    for _ in range(steps):
        dx = (np.roll(state, -1, 3) - np.roll(state, 1, 3)) / 2
        dy = (np.roll(state, -1, 2) - np.roll(state, 1, 2)) / 2
        neighbours = sum(np.roll(state, s, a) for s in (-1, 1) for a in (2, 3))
        state = state - wind[:, 0] * dx - wind[:, 1] * dy + 0.05 * (neighbours - 4 * state)
        states.append(state)
    return torch.from_numpy(np.stack(states, axis=1))


class Surrogate(nn.Module):
    def __init__(self, width=1280):
        super().__init__()
        cells = FIELDS * GRID * GRID
        self.net = nn.Sequential(
            nn.Flatten(),
            nn.Linear(cells, width),
            nn.GELU(),
            nn.Linear(width, width),
            nn.GELU(),
            nn.Linear(width, cells),
        )

    def forward(self, x):
        return x + self.net(x).view_as(x)


flows = simulate(60, 40)
now, then = flows[:, :-1].flatten(0, 1), flows[:, 1:].flatten(0, 1)
hold = 240
model = Surrogate()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
batch_size, epochs = 128, 18

for epoch in range(epochs):
    start, total, steps = time.time(), 0.0, 0
    for index in (torch.randperm(len(now) - hold) + hold).split(batch_size):
        loss = nn.functional.mse_loss(model(now[index]), then[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total, steps = total + loss.item(), steps + 1
    seconds = time.time() - start
    if epoch % 3 == 2:
        with torch.no_grad():
            error = nn.functional.mse_loss(model(now[:hold]), then[:hold]).item()
        print(f"epoch {epoch} train {total / steps:.5f} hold {error:.5f} {seconds:.2f}s")
