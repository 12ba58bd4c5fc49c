"""What a cow does (graze, ruminate, walk, lie), from the sensors of its collar."""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

DOES = ["graze", "ruminate", "walk", "lie"]
ROWS = 800


def write_recordings(root, count, seed=0):
    rng = np.random.default_rng(seed)
    root.mkdir(parents=True)
    t = np.arange(ROWS) / 25
    for i in range(count):
        k = int(rng.integers(len(DOES)))
        rate = (0.9, 1.2, 1.8, 0.2)[k] + rng.normal(0, 0.05)
        wave = np.sin(2 * np.pi * rate * t[:, None] + rng.uniform(0, 6, 6))
        x = (0.5, 0.35, 0.8, 0.1)[k] * wave + rng.normal(0, 0.45, (ROWS, 6))
        np.savetxt(
            root / f"{i:05d}_{DOES[k]}.csv",
            x,
            delimiter=",",
            fmt="%.4f",
            header="ax,ay,az,gx,gy,gz",
            comments="",
        )


class Collars(Dataset):
    def __init__(self, files, train):
        self.files = files
        self.train = train

    def __len__(self):
        return len(self.files)

    def __getitem__(self, i):
        path = self.files[i]
        x = np.genfromtxt(path, delimiter=",", skip_header=1, dtype=np.float32)
        if self.train:
            x = np.roll(x, np.random.randint(ROWS), axis=0) * np.random.uniform(0.9, 1.1)
        x = (x - x.mean(0)) / (x.std(0) + 1e-6)
        label = DOES.index(path.stem.split("_")[1])
        return torch.from_numpy(np.ascontiguousarray(x.T, dtype=np.float32)), label


class CollarNet(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        layers, c = [], 6
        for stride in (4, 2, 1, 2):
            layers += [
                nn.Conv1d(c, width, 7, stride=stride, padding=3),
                nn.BatchNorm1d(width),
                nn.ReLU(),
            ]
            c = width
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(width, len(DOES))

    def forward(self, x):
        return self.head(self.body(x).mean(-1))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--root", type=Path, default=Path("data/collars"))
    p.add_argument("--recordings", type=int, default=400)
    p.add_argument("--epochs", type=int, default=12)
    p.add_argument("--batch", type=int, default=20)
    a = p.parse_args()

    np.random.seed(1)
    torch.manual_seed(1)
    if not a.root.exists():
        write_recordings(a.root, a.recordings)
    files = sorted(a.root.glob("*.csv"))
    train = DataLoader(Collars(files[80:], True), batch_size=a.batch, shuffle=True)
    test = DataLoader(Collars(files[:80], False), batch_size=40)

    net = CollarNet()
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(1, a.epochs + 1):
        start = time.time()
        net.train()
        total = 0.0
        for x, y in train:
            opt.zero_grad()
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            total += loss.item()
        net.eval()
        right = 0
        with torch.no_grad():
            for x, y in test:
                right += (net(x).argmax(1) == y).sum().item()
        print(
            f"epoch {epoch:2d}  loss {total / len(train):.4f}  test {right / 80:.3f}"
            f"  {time.time() - start:.2f}s",
            flush=True,
        )


if __name__ == "__main__":
    main()
