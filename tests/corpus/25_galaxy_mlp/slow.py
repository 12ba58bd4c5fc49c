"""Estimate bulge fraction and bar strength of galaxies from photometry."""

import argparse
import os
import time

import numpy as np
import torch
from torch import nn

BANDS = ["u", "g", "r", "i", "z", "y", "j", "h"]


def catalogue(path, rows=24_000):
    """Magnitudes, colours and radii per band, as a structured array on disk."""
    if not os.path.exists(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        rng = np.random.default_rng(14)
        names = [f"{kind}_{band}" for kind in ("mag", "radius", "error") for band in BANDS]
        table = np.zeros(rows, dtype=[(n, "f8") for n in [*names, "bulge", "bar"]])
        bulge = rng.beta(2, 3, rows)
        bar = rng.beta(1, 4, rows) * (1 - bulge)
        for k, band in enumerate(BANDS):
            table[f"mag_{band}"] = 20 - 0.3 * k * bulge + rng.normal(0, 0.4, rows)
            table[f"radius_{band}"] = np.exp(1 - bulge + 0.2 * bar * k + rng.normal(0, 0.1, rows))
            table[f"error_{band}"] = rng.gamma(2, 0.02, rows)
        table["bulge"], table["bar"] = bulge, bar
        np.save(path, table)
    return np.load(path)


def tensors(table):
    names = [n for n in table.dtype.names if n not in ("bulge", "bar")]
    columns = np.column_stack([table[n] for n in names])
    columns = (columns - columns.mean(0)) / columns.std(0)
    target = np.column_stack([table["bulge"], table["bar"]])
    return torch.from_numpy(columns), torch.from_numpy(target)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width)
        )

    def forward(self, x):
        return x + self.inner(x)


class Morphology(nn.Module):
    def __init__(self, inputs, width=384, depth=3):
        super().__init__()
        self.first = nn.Linear(inputs, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(depth)])
        self.last = nn.Linear(width, 2)

    def forward(self, x):
        return torch.sigmoid(self.last(self.blocks(torch.relu(self.first(x)))))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--valid", type=int, default=2000)
    args = parser.parse_args()

    torch.manual_seed(14)
    x, y = tensors(catalogue("data/galaxies.npy"))
    x_train, y_train = x[args.valid :], y[args.valid :]
    x_valid, y_valid = x[: args.valid], y[: args.valid]
    model = Morphology(x.shape[1]).to(x.dtype)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    for epoch in range(args.epochs):
        began = time.time()
        for index in torch.randperm(len(x_train)).split(args.batch_size):
            loss = nn.functional.mse_loss(model(x_train[index]), y_train[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        seconds = time.time() - began
        with torch.no_grad():
            rms = (model(x_valid) - y_valid).pow(2).mean(0).sqrt().tolist()
        print(f"epoch {epoch} bulge {rms[0]:.3f} bar {rms[1]:.3f} train {seconds:.2f}s", flush=True)


if __name__ == "__main__":
    main()
