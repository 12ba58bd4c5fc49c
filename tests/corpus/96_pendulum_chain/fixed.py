"""Neural ODE for four coupled pendulums, learned from noisy paths of one and a half seconds."""

import time

import numpy as np
import torch
from torch import nn
from torch.utils.flop_counter import FlopCounterMode

PENDULUMS, STEPS, DT = 4, 12, 0.125


def true_paths(count, seed):
    """Angles and speeds by a fine Runge-Kutta."""
    rng = np.random.default_rng(seed)

    def change(s):
        angle, speed = s[:, :PENDULUMS], s[:, PENDULUMS:]
        pull = np.roll(angle, 1, 1) + np.roll(angle, -1, 1) - 2 * angle
        return np.concatenate([speed, -4 * np.sin(angle) + 0.8 * pull - 0.1 * speed], 1)

    state = rng.normal(0, 0.8, (count, 2 * PENDULUMS))
    paths, fine = [state], DT / 5
    for _ in range(STEPS):
        for _ in range(5):
            a = change(state)
            b = change(state + fine / 2 * a)
            state = state + fine * b
        paths.append(state)
    paths = np.stack(paths, 1) + rng.normal(0, 0.01, (count, STEPS + 1, 2 * PENDULUMS))
    return torch.from_numpy(paths.astype(np.float32))


class Flow(nn.Module):
    def __init__(self, size=2 * PENDULUMS, width=128):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(size, width),
            nn.Tanh(),
            nn.Linear(width, width),
            nn.Tanh(),
            nn.Linear(width, size),
        )

    def forward(self, state):
        return self.net(state)


class Rollout(nn.Module):
    def __init__(self):
        super().__init__()
        self.flow = Flow()

    def advance(self, state):
        a = self.flow(state)
        b = self.flow(state + DT / 2 * a)
        c = self.flow(state + DT / 2 * b)
        d = self.flow(state + DT * c)
        return state + DT / 6 * (a + 2 * b + 2 * c + d)

    def forward(self, state):
        path = []
        for _ in range(STEPS):
            state = self.advance(state)
            path.append(state)
        return torch.stack(path, 1)


class Run:
    def __init__(self, batch_size=384, lr=2e-3):
        self.batch_size = batch_size
        self.model = Rollout()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.gflops, self.per_step = 0.0, None

    def gradients(self, paths):
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.model(paths[:, 0]), paths[:, 1:])
        loss.backward()
        return loss.item()

    def step(self, paths):
        if self.per_step is None:
            with FlopCounterMode(display=False) as counter:
                loss = self.gradients(paths)
            self.per_step = counter.get_total_flops() / 1e9
        else:
            loss = self.gradients(paths)
        self.optimizer.step()
        self.gflops += self.per_step
        return loss

    def fit(self, paths, epochs):
        for epoch in range(epochs):
            start, losses, self.gflops = time.time(), [], 0.0
            for rows in torch.randperm(len(paths)).split(self.batch_size):
                losses.append(self.step(paths[rows]))
            took = time.time() - start
            rate = self.gflops / took
            mean = np.mean(losses)
            print(f"epoch {epoch} {mean:.5f} {took:.2f} s, {rate:.2f} GFLOP/s", flush=True)


def main():
    torch.manual_seed(118)
    Run().fit(true_paths(40 * 384, 118), epochs=4)


if __name__ == "__main__":
    main()
