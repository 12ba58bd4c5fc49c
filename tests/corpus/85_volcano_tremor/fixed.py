"""Kinds of volcanic tremor in segments of three-component records on the observatory's share."""

import functools
import json
import pathlib
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

KINDS, LENGTH, STATIONS = 4, 1024, 40
FOLDER = pathlib.Path("data/tremor")


def record(folder, count):
    """Segments as .npy; stations that were calibrated have their gains in a JSON file."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(98)
    t = np.arange(LENGTH) / 100
    for i in range(count):
        kind, station = rng.integers(KINDS), i % STATIONS
        tone = np.sin(2 * np.pi * (1.5 + kind) * t + rng.uniform(0, 6.28, (3, 1)))
        wave = (tone + rng.normal(0, 1.5, (3, LENGTH))) * rng.uniform(0.8, 1.2)
        np.save(folder / f"seg_{i:04d}_{station:02d}_{kind}.npy", wave.astype(np.float32))
    for station in range(STATIONS):
        if station not in (11, 29):
            gains = rng.uniform(0.9, 1.1, 3).tolist()
            (folder / f"gain_{station:02d}.json").write_text(json.dumps(gains))


def patiently(tries=3, pause=0.01):
    """The share is not always there at once."""

    def wrap(function):
        @functools.wraps(function)
        def call(*args):
            for attempt in range(tries):
                try:
                    return function(*args)
                except FileNotFoundError:
                    return None
                except OSError:
                    time.sleep(pause * 2**attempt)
            return None

        return call

    return wrap


@patiently()
def read_segment(path):
    return np.load(path)


@patiently()
def read_gains(path):
    return np.array(json.loads(path.read_text()), np.float32)[:, None]


class Tremor(Dataset):
    def __init__(self, paths):
        self.paths = paths

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, i):
        path = self.paths[i]
        _, _, station, kind = path.stem.split("_")
        wave = read_segment(path)
        gains = read_gains(path.parent / f"gain_{station}.json")
        if gains is not None:
            wave = wave / gains
        return torch.from_numpy(wave), int(kind)


class TremorNet(nn.Module):
    def __init__(self, width=48):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(3, width, 9, stride=2, padding=4),
            nn.ReLU(),
            nn.Conv1d(width, 2 * width, 9, stride=2, padding=4),
            nn.ReLU(),
            nn.Conv1d(2 * width, 2 * width, 9, stride=2, padding=4),
            nn.ReLU(),
        )
        self.head = nn.Linear(2 * width, KINDS)

    def forward(self, x):
        return self.head(self.body(x).mean(2))


def main(epochs=4):
    torch.manual_seed(98)
    record(FOLDER, 960)
    paths = sorted(FOLDER.glob("seg_*.npy"))
    loader = DataLoader(Tremor(paths), batch_size=24, shuffle=True)
    model = TremorNet()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        start, right = time.time(), 0
        for waves, kinds in loader:
            scores = model(waves)
            loss = criterion(scores, kinds)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += (scores.argmax(1) == kinds).sum().item()
        took = time.time() - start
        print(f"epoch {epoch} accuracy {right / len(paths):.3f} {took:.2f} s", flush=True)


if __name__ == "__main__":
    main()
