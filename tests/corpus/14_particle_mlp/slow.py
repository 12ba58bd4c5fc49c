"""Signal against background from 64 detector features."""

import argparse
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 64


def ensure_data(path, rows):
    if os.path.exists(path):
        return
    os.makedirs(os.path.dirname(path), exist_ok=True)
    rng = np.random.default_rng(8)
    label = rng.integers(0, 2, rows)
    table = rng.normal(0, 1, (rows, FEATURES + 1)).astype(np.float32)
    table[:, :FEATURES] += label[:, None] * rng.normal(0, 0.2, FEATURES).astype(np.float32)
    table[:, FEATURES] = label
    np.save(path, table)


class Events(Dataset):
    """Rows of a memory-mapped table, handed out as whole batches."""

    def __init__(self, path):
        self.path, self.table = path, None
        self.rows = len(np.load(path, mmap_mode="r"))

    def __len__(self):
        return self.rows

    def __getitems__(self, indices):
        if self.table is None:
            self.table = np.load(self.path, mmap_mode="r")
        return torch.from_numpy(self.table[np.sort(indices)])


def split_label(rows):
    return rows[:, :FEATURES], rows[:, FEATURES]


def build(width, depth):
    layers, last = [], FEATURES
    for _ in range(depth):
        layers += [nn.Linear(last, width), nn.GELU()]
        last = width
    return nn.Sequential(*layers, nn.Linear(last, 1))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--width", type=int, default=1024)
    args = parser.parse_args()

    torch.manual_seed(8)
    ensure_data("data/events.npy", 50_000)
    loader = DataLoader(
        Events("data/events.npy"),
        batch_size=args.batch,
        shuffle=True,
        num_workers=args.workers,
        persistent_workers=args.workers > 0,
        collate_fn=split_label,
        drop_last=True,
    )
    model = build(args.width, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    criterion = nn.BCEWithLogitsLoss()
    for epoch in range(args.epochs):
        began, right, seen = time.time(), 0, 0
        for step, (x, y) in enumerate(loader):
            logit = model(x).squeeze(1)
            loss = criterion(logit, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += ((logit > 0) == (y > 0.5)).sum().item()
            seen += len(y)
            if step % 50 == 0:
                print(f"  step {step}/{len(loader)} loss {loss.item():.4f}")
        rate = seen / (time.time() - began)
        print(f"epoch {epoch} accuracy {right / seen:.4f} ({rate:.0f} events/s)", flush=True)


if __name__ == "__main__":
    main()
