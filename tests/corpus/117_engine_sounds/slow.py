"""Faults of engines by ear: a one-dimensional ResNet on raw sound."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def sounds(n, length, faults, seed):
    rng = np.random.default_rng(seed)
    fault = rng.integers(0, faults, n)
    t = np.arange(length) / 4000
    hum = rng.uniform(25, 35, (n, 1))
    x = sum(np.sin(2 * np.pi * hum * k * t + rng.uniform(0, 6.28, (n, 1))) / k for k in (1, 2, 3))
    knock = np.sin(2 * np.pi * (400 + 150 * fault[:, None]) * t) * (
        np.sin(2 * np.pi * hum / 2 * t) > 0.9
    )
    x = x + knock + rng.normal(0, 0.8, x.shape)
    return TensorDataset(torch.from_numpy(x[:, None].astype(np.float32)), torch.from_numpy(fault))


class Residual(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(inside, outside, 7, stride, 3, bias=False),
            nn.BatchNorm1d(outside),
            nn.ReLU(inplace=True),
            nn.Conv1d(outside, outside, 7, 1, 3, bias=False),
            nn.BatchNorm1d(outside),
        )
        self.skip = nn.Conv1d(inside, outside, 1, stride, bias=False)

    def forward(self, x):
        return torch.relu(self.body(x) + self.skip(x))


def network(faults):
    return nn.Sequential(
        nn.Conv1d(1, 32, 15, 4, 7),
        nn.ReLU(),
        Residual(32, 48, 2),
        Residual(48, 64, 2),
        Residual(64, 96, 2),
        nn.AdaptiveAvgPool1d(1),
        nn.Flatten(),
        nn.Linear(96, faults),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--faults", type=int, default=6)
    parser.add_argument("--length", type=int, default=4000)
    args = parser.parse_args()
    torch.manual_seed(64)
    train, valid = (
        sounds(1280, args.length, args.faults, 64),
        sounds(160, args.length, args.faults, 65),
    )
    train_loader = DataLoader(train, args.batch, shuffle=True)
    valid_loader = DataLoader(valid, 80)
    model = network(args.faults)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.epochs)
    for epoch in range(args.epochs):
        begin, loss_sum = time.time(), 0.0
        model.train()
        for step, (x, y) in enumerate(train_loader):
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            loss_sum += loss.item()
            if step % 20 == 0:
                print(f"  {epoch}/{step}: {loss.item():.4f}", flush=True)
        schedule.step()
        model.eval()
        with torch.no_grad():
            right = sum((model(x).argmax(1) == y).sum().item() for x, y in valid_loader)
        print(
            f"epoch {epoch} right {right / len(valid):.3f} took {time.time() - begin:.2f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
