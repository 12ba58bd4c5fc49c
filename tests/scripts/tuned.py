"""A training to tune: anomaly detection is on, or each sample waits for 4 ms."""

import argparse
import os
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __init__(self, count, item_ms):
        self.count, self.item_ms = count, item_ms

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        if self.item_ms:
            time.sleep(self.item_ms / 1000)
        return torch.full((64,), float(i % 7)), i % 2


def main():
    ask = argparse.ArgumentParser()
    ask.add_argument("--epochs", type=int, default=4)
    ask.add_argument("--rows", type=int, default=1600)
    ask.add_argument("--item-ms", type=float, default=0.0)
    ask.add_argument("--anomaly", action="store_true")
    ask.add_argument("--exit-code", type=int, default=0)
    given = ask.parse_args()
    torch.manual_seed(0)
    torch.autograd.set_detect_anomaly(given.anomaly)
    layers = [layer for _ in range(12) for layer in (nn.Linear(64, 64), nn.ReLU())]
    model = nn.Sequential(*layers, nn.Linear(64, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(Rows(given.rows, given.item_ms), 8, num_workers=0)
    loss = torch.zeros(())
    for _ in range(given.epochs):
        for rows, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(rows), labels)
            loss.backward()
            optimizer.step()
    print(f"loss {loss.item():.9f}, OMP_NUM_THREADS={os.environ.get('OMP_NUM_THREADS')}")
    raise SystemExit(given.exit_code)


if __name__ == "__main__":
    main()
