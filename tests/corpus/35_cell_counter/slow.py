"""Count cells under the microscope by regressing a density map."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 64


def micrographs(count, seed):
    rng = np.random.default_rng(seed)
    axis = np.arange(SIDE)
    images = rng.normal(0, 0.15, (count, 1, SIDE, SIDE)).astype(np.float32)
    density = np.zeros((count, 1, SIDE, SIDE), dtype=np.float32)
    for i in range(count):
        for _ in range(int(rng.integers(2, 12))):
            cx, cy = rng.uniform(6, SIDE - 6, 2)
            gx = np.exp(-((axis - cx) ** 2) / 8)
            gy = np.exp(-((axis - cy) ** 2) / 8)
            spot = np.outer(gy, gx).astype(np.float32)
            images[i, 0] += rng.uniform(0.6, 1.0) * spot
            density[i, 0] += spot / spot.sum()
    return TensorDataset(torch.from_numpy(images), torch.from_numpy(density))


class Counter(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, width, 3, padding=1),
            nn.BatchNorm2d(width),
            nn.LeakyReLU(0.1),
            nn.Conv2d(width, 1, 1),
            nn.Softplus(),
        )

    def forward(self, x):
        return self.net(x) / 100


def validate(model, loader):
    model.eval()
    densities, truth = [], []
    for images, target in loader:
        density = model(images)
        densities.append(density)
        truth.append(target)
    counted = torch.cat(densities).sum((1, 2, 3))
    error = (counted - torch.cat(truth).sum((1, 2, 3))).abs().mean()
    model.train()
    return error.item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()

    torch.manual_seed(36)
    train = DataLoader(micrographs(400, 1), args.batch_size, shuffle=True)
    valid = DataLoader(micrographs(600, 2), 30)
    model = Counter()
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
    for epoch in range(args.epochs):
        tic = time.time()
        for images, target in train:
            loss = (model(images) - target).pow(2).sum((1, 2, 3)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        toc = time.time()
        error = validate(model, valid)
        spent = time.time() - toc
        print(f"epoch {epoch} train {toc - tic:.1f}s valid {spent:.1f}s", flush=True)
        print(f"         off by {error:.2f} cells")


if __name__ == "__main__":
    main()
