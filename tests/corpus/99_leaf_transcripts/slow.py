"""Tissue of a plant from gene counts: log counts, principal components, a small network."""

import pathlib
import time

import numpy as np
import torch
from torch import nn

CELLS, GENES, TISSUES, COMPONENTS = 9000, 1500, 12, 32


def sequence(path):
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng(121)
        tissue = rng.integers(TISSUES, size=CELLS)
        programs = rng.normal(0, 1, (TISSUES, 40))
        activity = programs[tissue] + rng.normal(0, 1.6, (CELLS, 40))
        level = activity @ rng.normal(0, 0.25, (40, GENES)) + rng.normal(0, 1, GENES)
        counts = rng.poisson(np.exp(np.clip(level, -4, 5))).astype(np.uint16)
        np.savez(path, counts=counts, tissue=tissue)
    stored = np.load(path)
    return stored["counts"], stored["tissue"]


def normalise(counts):
    counts = torch.from_numpy(counts.astype(np.float32))
    depth = counts.sum(1, keepdim=True)
    logs = torch.log1p(counts / depth * depth.median())
    return logs - logs.mean(0)


def reduce(logs):
    """Coordinates of every cell along the first principal components, each of unit variance."""
    _, spread, rows = torch.linalg.svd(logs)
    axes = rows[:COMPONENTS].T
    return logs @ axes / spread[:COMPONENTS] * len(logs) ** 0.5


class TissueNet(nn.Module):
    def __init__(self, width=768):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(COMPONENTS, width),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(width, width),
            nn.ReLU(),
        )
        self.head = nn.Linear(width, TISSUES)

    def forward(self, x):
        return self.head(self.body(x))


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        right = (model(x).argmax(1) == y).float().mean().item()
    model.train()
    return right


def main(epochs=4, batch_size=128):
    torch.manual_seed(121)
    counts, tissue = sequence(pathlib.Path("data/leaf.npz"))
    x, y = reduce(normalise(counts)), torch.from_numpy(tissue)
    order = torch.randperm(CELLS)
    test, train = order[:800], order[800:]
    model = TissueNet()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for epoch in range(epochs):
        start, total = time.time(), 0.0
        for rows in train[torch.randperm(len(train))].split(batch_size):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(rows)
        schedule.step()
        took = time.time() - start
        right = accuracy(model, x[test], y[test])
        print(f"epoch {epoch} {total / len(train):.4f} {right:.3f} {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
