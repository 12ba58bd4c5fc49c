"""Predict the level of a river two hours ahead from the gauges above."""

import time
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Dataset

GAUGES, LENGTH = 12, 96


@dataclass
class Options:
    records: int = 1200
    batch_size: int = 16
    epochs: int = 3
    hidden: int = 160
    lr: float = 1e-3


class Gateway:
    """The archive of the gauges answers one request at a time, some milliseconds each."""

    def __init__(self, latency=0.004, seed=31):
        self.latency = latency
        rng = np.random.default_rng(seed)
        t = np.arange(40_000)
        rain = np.convolve(rng.exponential(1, len(t)) * (rng.random(len(t)) < 0.05), np.ones(30))
        levels = [np.roll(rain[: len(t)], 3 * g) * rng.uniform(0.5, 1.5) for g in range(GAUGES)]
        self.levels = np.stack(levels, axis=1).astype(np.float32)

    def read(self, begin, count):
        time.sleep(self.latency)
        return self.levels[begin : begin + count]


class Records(Dataset):
    def __init__(self, gateway, options):
        self.gateway = gateway
        rng = np.random.default_rng(32)
        self.begins = rng.integers(0, len(gateway.levels) - LENGTH - 9, options.records)

    def __len__(self):
        return len(self.begins)

    def __getitem__(self, i):
        rows = self.gateway.read(int(self.begins[i]), LENGTH + 8)
        x = torch.from_numpy(rows[:LENGTH].copy())
        return x / 20, torch.tensor(rows[-1, -1] / 20)


class Level(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.gru = nn.GRU(GAUGES, hidden, batch_first=True)
        self.head = nn.Sequential(nn.Linear(hidden, hidden), nn.ReLU(), nn.Linear(hidden, 1))

    def forward(self, x):
        h, _ = self.gru(x)
        return self.head(h[:, -1]).squeeze(1)


def main(options):
    torch.manual_seed(31)
    records = Records(Gateway(), options)
    loader = DataLoader(records, batch_size=options.batch_size, shuffle=True)
    model = Level(options.hidden)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    for epoch in range(options.epochs):
        start, total = time.time(), 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        took, mean = time.time() - start, total / len(loader)
        print(f"epoch {epoch} mse {mean:.4f} {took:.2f} s", flush=True)


if __name__ == "__main__":
    main(Options())
