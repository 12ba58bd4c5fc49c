"""Period of a statue from its laser scan; a sample is a small part of the scan's points."""

import argparse
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PERIODS = ["archaic", "classical", "hellenistic", "roman"]
DRAW = np.random.default_rng(111)


def scan(rng, period, points):
    """Points on a draped body; the number of folds goes with the period."""
    u = rng.uniform(0, 2 * np.pi, points).astype(np.float32)
    h = rng.uniform(-1, 1, points).astype(np.float32)
    folds = 3 + 2 * period
    radius = (1 - 0.5 * h**2) * (1 + 0.15 * np.sin(folds * u + rng.uniform(0, 6.28)))
    xyz = np.stack([radius * np.cos(u), radius * np.sin(u), 1.5 * h], axis=1)
    xyz = xyz + rng.normal(0, 0.02, xyz.shape)
    return xyz.astype(np.float32)


class StatueParts(Dataset):
    def __init__(self, scans, points, parts):
        self.scans, self.points, self.parts = scans, points, parts

    def __len__(self):
        return len(self.scans) * self.parts

    def __getitem__(self, i):
        xyz, period = self.scans[i % len(self.scans)]
        chosen = DRAW.choice(len(xyz), self.points, replace=False)
        part = xyz[chosen]
        part = part - part.mean(0)
        part /= np.abs(part).max()
        angle = np.random.uniform(0, 2 * np.pi)
        c, s = np.cos(angle), np.sin(angle)
        turn = np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]], np.float32)
        return torch.from_numpy(part @ turn), period


class PointNet(nn.Module):
    def __init__(self, widths=(48, 96, 192), classes=len(PERIODS)):
        super().__init__()
        layers, size = [], 3
        for width in widths:
            layers += [nn.Linear(size, width), nn.ReLU()]
            size = width
        self.points = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.Linear(size, 96), nn.ReLU(), nn.Linear(96, classes))

    def forward(self, xyz):
        return self.head(self.points(xyz).amax(dim=1))


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scans", type=int, default=40)
    parser.add_argument("--scan-points", type=int, default=200_000)
    parser.add_argument("--points", type=int, default=512)
    parser.add_argument("--parts", type=int, default=15, help="samples of a scan per epoch")
    parser.add_argument("--batch", type=int, default=24)
    parser.add_argument("--epochs", type=int, default=8)
    return parser.parse_args()


def main():
    args = parse()
    torch.manual_seed(110)
    np.random.seed(110)
    rng = np.random.default_rng(110)
    scans = []
    for i in range(args.scans):
        period = i % len(PERIODS)
        scans.append((scan(rng, period, args.scan_points), period))
    data = StatueParts(scans, args.points, args.parts)
    loader = DataLoader(data, batch_size=args.batch, shuffle=True, drop_last=True)
    model = PointNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(args.epochs):
        start, right, seen = time.time(), 0, 0
        for xyz, period in loader:
            scores = model(xyz)
            loss = nn.functional.cross_entropy(scores, period)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == period).sum().item()
            seen += len(period)
        took = time.time() - start
        print(f"epoch {epoch}: accuracy {right / seen:.3f}, {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
