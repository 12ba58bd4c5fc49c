"""Condition of oil pumps from the load on the rod during one stroke; strokes come as JSON lines."""

import argparse
import itertools
import json
import os
import time

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

STATES = ["good", "gas", "worn valve", "parted rod", "fluid pound"]
POINTS = 1500


def record_strokes(path, n, seed):
    rng = np.random.default_rng(seed)
    t = np.linspace(0, 2 * np.pi, POINTS)
    with open(path, "w") as f:
        for _ in range(n):
            s = int(rng.integers(len(STATES)))
            load = 40 + 15 * np.tanh(3 * np.sin(t + 0.2 * rng.normal()))
            load += (2 + s) * np.sin((3 + 2 * s) * t + rng.uniform(0, 6)) + rng.normal(0, 3, POINTS)
            spikes = rng.integers(0, POINTS, 12)
            load[spikes] += rng.normal(0, 60, 12)
            row = {
                "well": int(rng.integers(300)),
                "state": STATES[s],
                "load": load.round(2).tolist(),
            }
            f.write(json.dumps(row) + "\n")


def despike(x, width=9):
    pad = np.pad(x, width // 2, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(pad, width)
    return np.median(windows, axis=1)


def describe(load):
    clean = despike(np.asarray(load))
    clean = (clean - clean.mean()) / clean.std()
    frames = np.lib.stride_tricks.sliding_window_view(clean, 256)[::32] * np.hanning(256)
    spectrum = np.log1p(np.abs(np.fft.rfft(frames, axis=1)))[:, :40]
    return torch.from_numpy(spectrum.astype(np.float32))


class Strokes(IterableDataset):
    def __init__(self, path):
        self.path = path

    def samples(self):
        with open(self.path) as f:
            for line in f:
                row = json.loads(line)
                yield describe(row["load"]), STATES.index(row["state"])

    def __iter__(self):
        info = get_worker_info()
        if info is None:
            return self.samples()
        return itertools.islice(self.samples(), info.id, None, info.num_workers)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(
            nn.Conv1d(40, 64, 5, padding=2),
            nn.ReLU(),
            nn.MaxPool1d(2),
            nn.Conv1d(64, 64, 5, padding=2),
            nn.ReLU(),
        )
        self.out = nn.Linear(64, len(STATES))

    def forward(self, x):
        return self.out(self.conv(x.transpose(1, 2)).mean(2))


if __name__ == "__main__":
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=8)
    ap.add_argument("--strokes", type=int, default=1600)
    ap.add_argument("--batch", type=int, default=32)
    ap.add_argument("--workers", type=int, default=2)
    opt = ap.parse_args()

    torch.manual_seed(3)
    os.makedirs("data", exist_ok=True)
    path = f"data/strokes_{opt.strokes}.jsonl"
    if not os.path.exists(path):
        record_strokes(path, opt.strokes, seed=3)

    loader = DataLoader(
        Strokes(path), batch_size=opt.batch, num_workers=opt.workers, persistent_workers=True
    )
    net = Net()
    optim = torch.optim.Adam(net.parameters(), lr=2e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, opt.epochs + 1):
        t0, hits, n = time.time(), 0, 0
        for x, y in loader:
            optim.zero_grad()
            out = net(x)
            criterion(out, y).backward()
            optim.step()
            hits += (out.argmax(1) == y).sum().item()
            n += len(y)
        print(
            f"[{epoch}/{opt.epochs}] acc={hits / n:.3f} n={n} time={time.time() - t0:.2f}s",
            flush=True,
        )
