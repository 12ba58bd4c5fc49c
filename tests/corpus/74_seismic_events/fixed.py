import functools
import os
import time

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FOLDER = "data/stations"
RECORDS = 400
RAW = 48_000
KEPT = RAW // 16
CROP = 1024


def generate():
    os.makedirs(FOLDER, exist_ok=True)
    rng = np.random.default_rng(83)
    for i in range(RECORDS):
        path = f"{FOLDER}/{i:04d}.npz"
        trace = rng.normal(0, 200, (3, RAW))
        kind = i % 3
        if kind:
            onset = rng.integers(RAW // 3, RAW // 2)
            t = np.arange(RAW - onset)
            pulse = np.sin(t * 0.02 * kind) * np.exp(-t / 6000.0)
            trace[:, onset:] += rng.uniform(200, 900, (3, 1)) * pulse
        if not os.path.exists(path):
            np.savez_compressed(path, trace=trace.astype(np.int16), kind=kind)


@functools.lru_cache(maxsize=None)
def load_record(path):
    """Band-passed and thinned out trace of a record."""
    with np.load(path) as f:
        trace, kind = f["trace"].astype(np.float32), int(f["kind"])
    spectrum = np.fft.rfft(trace, axis=1)
    band = np.arange(spectrum.shape[1])
    spectrum[:, (band < 20) | (band > KEPT // 2)] = 0
    trace = np.fft.irfft(spectrum, n=RAW, axis=1)[:, ::16]
    return (trace / trace.std()).astype(np.float32), kind


class Records(Dataset):
    def __init__(self, names, train):
        self.names, self.train = names, train

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        trace, kind = load_record(os.path.join(FOLDER, self.names[i]))
        start = (KEPT - CROP) // 2
        if self.train:
            start += int(torch.randint(-150, 150, ()))
        return torch.from_numpy(trace[:, start : start + CROP].copy()), kind


def conv(i, o):
    return nn.Sequential(nn.Conv1d(i, o, 7, stride=2, padding=3), nn.BatchNorm1d(o), nn.ReLU())


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(conv(3, 32), conv(32, 64), conv(64, 96), conv(96, 96))
        self.head = nn.Linear(96, 3)

    def forward(self, x):
        return self.head(self.body(x).amax(-1))


def main():
    torch.manual_seed(83)
    generate()
    names = sorted(os.listdir(FOLDER))
    loader = DataLoader(Records(names[40:], True), batch_size=24, shuffle=True)
    test = DataLoader(Records(names[:40], False), batch_size=40)
    net = Net()
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    for epoch in range(7):
        tic = time.time()
        net.train()
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)
            opt.zero_grad()
            loss.backward()
            opt.step()
        toc = time.time()
        net.eval()
        with torch.no_grad():
            hits = sum((net(x).argmax(1) == y).sum().item() for x, y in test)
        print(f"epoch {epoch} loss {loss.item():.3f} test {hits / 40:.3f} train {toc - tic:.2f} s", flush=True)


if __name__ == "__main__":
    main()
