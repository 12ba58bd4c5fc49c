"""Shrinkage of bricks from the log of the kiln: radial bases with a linear expert at each."""

import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

CSV = Path("data/kiln.csv")
COLUMNS = [f"zone{i}" for i in range(12)] + ["gas", "oxygen", "draught", "speed"]
ROWS, CENTRES, ROUNDS = 80_000, 64, 500
EPOCHS, BATCH = 12, 256


def export_csv():
    """What the historian of the plant would give us."""
    rng = np.random.default_rng(8)
    CSV.parent.mkdir(exist_ok=True)
    regimes = rng.normal(0, 1.5, (40, len(COLUMNS)))
    regime = rng.integers(0, 40, ROWS)
    x = regimes[regime] + rng.normal(0, 0.6, (ROWS, len(COLUMNS)))
    slopes = rng.normal(0, 0.4, (40, len(COLUMNS)))
    target = ((x - regimes[regime]) * slopes[regime]).sum(1) + rng.normal(0, 1, 40)[regime]
    header = ",".join([*COLUMNS, "shrinkage"])
    table = np.column_stack([x, target + rng.normal(0, 0.1, ROWS)])
    np.savetxt(CSV, table, fmt="%.4f", delimiter=",", header=header, comments="")


def load():
    table = np.loadtxt(CSV, delimiter=",", skiprows=1, dtype=np.float32)
    x, y = table[:, :-1], table[:, -1:]
    x = (x - x.mean(0)) / x.std(0)
    return torch.from_numpy(x), torch.from_numpy(y)


def k_means(x, k, rounds):
    centres = x[torch.randperm(len(x))[:k]].clone()
    nearest = torch.full((len(x),), -1)
    for _ in range(rounds):
        nearest = torch.cdist(x, centres).argmin(1)
        sums = torch.zeros_like(centres).index_add_(0, nearest, x)
        counts = torch.bincount(nearest, minlength=k).clamp(min=1)
        before, centres = centres, sums / counts[:, None]
        if torch.equal(centres, before):
            break
    spread = (x - centres[nearest]).pow(2).sum(1).mean().sqrt()
    return centres, spread


class RadialNet(nn.Module):
    def __init__(self, centres, spread):
        super().__init__()
        self.centres = nn.Parameter(centres)
        self.log_width = nn.Parameter(spread.log().repeat(len(centres)))
        self.experts = nn.Linear(centres.shape[1], len(centres))

    def forward(self, x):
        near = -((torch.cdist(x, self.centres) / self.log_width.exp()) ** 2)
        return (near.softmax(1) * self.experts(x)).sum(1, keepdim=True)


def main():
    if not CSV.exists():
        export_csv()
    torch.manual_seed(8)
    x, y = load()
    cut = int(0.9 * len(x))
    model = RadialNet(*k_means(x[:cut], CENTRES, ROUNDS))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    print(f"{cut} rows, {CENTRES} centres, width {model.log_width.exp().mean():.3f}", flush=True)
    for epoch in range(EPOCHS):
        start, seen = time.time(), 0.0
        order = torch.randperm(cut)
        for rows in order.split(BATCH):
            loss = nn.functional.mse_loss(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += loss.item() * len(rows)
        with torch.no_grad():
            error = nn.functional.mse_loss(model(x[cut:]), y[cut:]).sqrt()
        took = time.time() - start
        print(
            f"epoch {epoch} mse {seen / cut:.4f} test rmse {error:.4f} in {took:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
